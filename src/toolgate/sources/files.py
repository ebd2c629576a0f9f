"""Tool files: YAML or JSON below the settings' folder, by glob."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.problem import Problem
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin, ToolSpec


class FileSource:
    """All files that match. One bad file refuses them all: nothing is half loaded."""

    name = "files"
    required = True

    def __init__(self, root: Path, globs: Sequence[str]) -> None:
        self._root = root
        self._globs = tuple(globs)

    async def load(self) -> Sequence[ToolSpec]:
        """Read every file, and tell the problems of all of them at once."""
        return await asyncio.to_thread(self._load)

    def _load(self) -> list[ToolSpec]:
        specs: list[ToolSpec] = []
        problems: list[object] = []
        for path in self._paths():
            shown = path.relative_to(self._root).as_posix()
            try:
                specs.extend(read_file(path, shown))
            except InvalidSpecs as error:
                problems.extend(error.problems)
        if problems:
            raise InvalidSpecs(problems)
        return specs

    def _paths(self) -> list[Path]:
        found: set[Path] = set()
        for glob in self._globs:
            found.update(path for path in self._root.glob(glob) if path.is_file())
        return sorted(found)


def read_file(path: Path, shown: str) -> list[ToolSpec]:
    """The specs of one file; `shown` is how messages call it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidSpecs(
            [Problem(file=shown, message=f"cannot be read ({error.strerror})", write="Check it.")]
        ) from None
    text = parse(raw, file=shown)
    origin = Origin("file", shown)
    return read_tools(text.value, file=shown, origin=origin, line_of=text.line_of)
