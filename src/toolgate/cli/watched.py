"""The files that a server in development rests on, and what is wrong with those that changed."""

import ast
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from toolgate.premises import roots_of
from toolgate.settings.settings import Settings

# Size and time of each file; what is gone is not in it.
Stamps = dict[Path, tuple[int, int]]
_MOST = 5_000
_POLICIES = frozenset({".rego", ".json", ".yaml", ".yml"})


def stamps(file: Path, settings: Settings) -> Stamps:
    """As they are now: the settings file, tool files, policies, and Python below the folder."""
    found: dict[Path, tuple[int, int]] = {}
    for path in (file, *_files(settings)):
        try:
            stat = path.stat()
        except OSError:
            continue
        found[path] = (stat.st_size, stat.st_mtime_ns)
        if len(found) >= _MOST:
            break
    return found


def changed(before: Stamps, now: Stamps) -> list[Path]:
    """What came, went or has other content."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def broken(paths: list[Path], root: Path) -> list[str]:
    """What cannot be Python in them, with file and line; no code is run for that."""
    found: list[str] = []
    for path in paths:
        if path.suffix != ".py":
            continue
        try:
            ast.parse(path.read_bytes())
        except SyntaxError as error:
            found.append(f"{shown(path, root)}:{error.lineno or 1}: {error.msg}")
        except (OSError, ValueError):
            continue
    return found


def shown(path: Path, root: Path) -> str:
    """The path as messages call it."""
    return os.path.relpath(path, root)


def _files(settings: Settings) -> Iterator[Path]:
    root = settings.root
    for glob in settings.tools.files:
        yield from root.glob(glob)
    policies = settings.path(settings.policy.path)
    for path in policies.rglob("*") if policies.is_dir() else ():
        if path.suffix in _POLICIES:
            yield path
    yield from _python(root, roots_of(settings))


def _python(folder: Path, written: Collection[str]) -> Iterator[Path]:
    for top, folders, files in os.walk(os.path.realpath(folder)):
        # Not what is hidden, nor the libraries of an environment, nor what tools write.
        folders[:] = [
            name for name in folders if _is_own(Path(top, name)) and f"{top}/{name}" not in written
        ]
        yield from (Path(top, name) for name in files if name.endswith(".py"))


def _is_own(folder: Path) -> bool:
    return (
        not folder.name.startswith((".", "__pycache__", "node_modules"))
        and not (folder / "pyvenv.cfg").exists()
    )
