"""Bringing a tool file in: read whole, checked against all that is there, then kept."""

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import NamedTuple

from toolgate.bootstrap import Toolgate
from toolgate.errors import InvalidRequest
from toolgate.settings.settings import Settings
from toolgate.spec.tool import ToolSpec
from toolgate.toolfiles import read_tool_file

_MAGIC = frozenset("*?[")
_FILES = "files"


class Brought(NamedTuple):
    """Where the file stands now, its tools, and what to know about them."""

    file: str
    tools: list[str]
    notes: list[str]


async def bring(settings: Settings, file: Path, *, replace: bool) -> Brought:
    """Copy a tool file to where the settings look for them; `replace` one of that name."""
    place = place_of(settings, file.name)
    target = settings.root / place
    text = text_of(file)
    _need_room(target, file, replace=replace)
    specs = read_tool_file(file, str(place))
    async with Toolgate.open(settings) as gate:
        notes = checked(gate, [str(place)], specs)
    write(target, text)
    return Brought(str(place), [spec.name for spec in specs], notes)


def checked(gate: Toolgate, places: Sequence[str], specs: Sequence[ToolSpec]) -> list[str]:
    """`NameClash` where another source has a tool of that name; else which of them cannot run.

    What is in the files of these places goes.
    """
    catalog = gate.catalog
    kept = [one for one in catalog.part(_FILES) if one.origin.where not in places]
    catalog.put(_FILES, [*kept, *specs])
    unusable = catalog.current.unusable
    return [
        f"{spec.name} cannot run yet: {unusable[spec.name]}."
        for spec in specs
        if spec.name in unusable
    ]


def place_of(settings: Settings, name: str) -> PurePath:
    """Below the settings' folder, where a pattern of theirs finds it."""
    for pattern in map(PurePath, settings.tools.files):
        if not _MAGIC & set(str(pattern.parent)) and fnmatch(name, pattern.name):
            return pattern.parent / name
    patterns = ", ".join(settings.tools.files) or "none"
    raise InvalidRequest(f"[tools] files would not find {name[:80]!r}; its patterns: {patterns}.")


def _need_room(target: Path, file: Path, *, replace: bool) -> None:
    # A link counts also when it leads nowhere: what it names is not ours to write.
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not replace:
        raise InvalidRequest(
            f"{target.name} is there already; nothing was changed. Another name, or --replace."
        )
    if target.samefile(file):
        raise InvalidRequest(f"{target.name} is the file itself; nothing is to be done.")


def text_of(file: Path) -> bytes:
    """A tool file as it is."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read ({error.strerror}).") from None


def write(target: Path, text: bytes) -> None:
    """Whole or not at all: a server may read it at this moment."""
    # No pattern finds it under this name.
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(text)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidRequest(f"{target.name} cannot be written ({error.strerror}).") from None
