"""The Python that runs callers' code in the sandbox, and which folders it needs there."""

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from toolgate.tools.means import Means

# Not the whole folder: beside these some keep how packages are fetched, with keys.
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
# Shown to every program.
_SYSTEM = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/"))


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A program, what has to be readable for it, and where that leads."""

    program: str
    readable: tuple[str, ...]
    agreed: Mapping[str, str]


def interpreter(means: Means) -> Interpreter:
    """The one that the settings name, or our own."""
    named = means.settings.code.python
    return _of(str((means.root / named).absolute()) if named else sys.executable)


@cache
def own_code() -> tuple[str, ...]:
    """Where our own code lies, which no program that we start may change."""
    named = map(sysconfig.get_path, ("stdlib", "purelib", "platlib", "scripts"))
    package = Path(__file__).parents[2]
    places = {Path(os.path.realpath(place)) for place in (*named, package)}
    if sys.prefix != sys.base_prefix:
        places.add(Path(os.path.realpath(sys.prefix)))
    return tuple(sorted(map(str, places)))


@cache
def _of(program: str) -> Interpreter:
    parts = [
        str(prefix / part)
        for prefix in dict.fromkeys(_prefixes(Path(program)))
        if prefix not in _SYSTEM
        for part in _PARTS
        if (prefix / part).exists()
    ]
    return Interpreter(
        program=program,
        readable=tuple(parts),
        # Whoever installed it has agreed to its links; they are looked at once.
        agreed=MappingProxyType({part: os.path.realpath(part) for part in parts}),
    )


def _prefixes(program: Path) -> Iterator[Path]:
    """Where it is installed; for a virtual environment also where that comes from."""
    prefix = program.parent.parent
    yield prefix
    yield Path(os.path.realpath(program)).parent.parent
    try:
        lines = (prefix / "pyvenv.cfg").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip().startswith("/"):
            yield Path(value.strip()).parent
