"""Tool files: YAML or JSON below the settings' folder, by glob."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.problem import Problem
from toolgate.spec.reader import MAX_PROBLEMS, read_tools
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.text.document import MAX_BYTES, too_large

MAX_FILES = 10_000


_Stamp = tuple[int, int, int]


class FileSource:
    """All files that match. One bad file refuses them all: nothing is half loaded."""

    name = "files"
    required = True

    def __init__(self, root: Path, globs: Sequence[str]) -> None:
        self._root = root
        self._globs = tuple(globs)
        self._read: dict[Path, tuple[_Stamp, list[ToolSpec]]] = {}

    async def load(self) -> Sequence[ToolSpec]:
        """Read every file, and tell the problems of all of them at once."""
        return await asyncio.to_thread(self._load)

    def _load(self) -> list[ToolSpec]:
        specs: list[ToolSpec] = []
        problems: list[object] = []
        for path in self._paths():
            try:
                specs.extend(self._specs(path))
            except InvalidSpecs as error:
                problems += error.problems
                if len(problems) >= MAX_PROBLEMS:
                    break
        if problems:
            raise InvalidSpecs(problems[:MAX_PROBLEMS])
        return specs

    def _specs(self, path: Path) -> list[ToolSpec]:
        """A file is read again when it has changed."""
        stamp = _stamp(path)
        known = self._read.get(path)
        if known is not None and stamp is not None and known[0] == stamp:
            return known[1]
        specs = read_file(path, self._shown(path))
        if stamp is not None:
            self._read[path] = (stamp, specs)
        return specs

    def _paths(self) -> list[Path]:
        found: set[Path] = set()
        for glob in self._globs:
            try:
                found.update(path for path in self._root.glob(glob) if path.is_file())
            except (ValueError, NotImplementedError):
                raise _refused(
                    "tools.files",
                    f"has {glob[:80]!r}, which is no pattern of files below the settings' folder",
                    "Write for example tools/*.yaml.",
                ) from None
            if len(found) > MAX_FILES:
                raise _refused(
                    "tools.files",
                    f"matches more than {MAX_FILES:,} files",
                    "Write patterns that match tool files only.",
                )
        return sorted(found)

    def _shown(self, path: Path) -> str:
        """The path as messages call it: never where on the machine, always printable."""
        return os.fsencode(os.path.relpath(path, self._root)).decode("utf-8", "backslashreplace")


def read_file(path: Path, shown: str) -> list[ToolSpec]:
    """The specs of one file; `shown` is how messages call it."""
    try:
        with path.open("rb") as file:
            # The size first: a file that is too large is never in memory.
            size = os.fstat(file.fileno()).st_size
            raw = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    except OSError as error:
        raise _refused(
            shown, f"cannot be read ({error.strerror})", "Make it readable, or move it."
        ) from None
    if size > MAX_BYTES:
        refusal = too_large(size)
        raise _refused(shown, refusal.message, refusal.write)
    text = parse(raw, file=shown)
    origin = Origin("file", shown)
    return read_tools(text.value, file=shown, origin=origin, line_of=text.line_of)


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _refused(file: str, message: str, write: str) -> InvalidSpecs:
    return InvalidSpecs([Problem(file=file, message=message, write=write)])
