"""Tool files that are kept in the store: what an operator imported on a running server.

They came over a wire, so that they name no code of this machine.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from toolgate.errors import InvalidSpecs, SourceUnavailable, StoreError
from toolgate.sources.remote import data_only
from toolgate.sources.text import parse
from toolgate.spec.reader import MAX_PROBLEMS, read_tools
from toolgate.spec.tool import Origin, ToolSpec

IMPORTS = "imports"
_KIND = "import"
_Files = Callable[[], Awaitable[Mapping[str, str]]]


class KeptFiles:
    """All of them. One that cannot be used any more leaves the others as they were."""

    name = IMPORTS
    # What is in files on this machine, or built in, comes first where names clash.
    required = False
    # And among themselves, what was kept first: only the file that clashes is left out.
    by_file = True

    @property
    def unused(self) -> bool:
        """Whether nothing is kept: then there is nothing to tell of it either."""
        return not self._read

    def __init__(self, files: _Files) -> None:
        self._files = files
        self._read: dict[str, tuple[str, list[ToolSpec]]] = {}

    async def load(self) -> Sequence[ToolSpec]:
        """Read every file, and tell the problems of all of them at once."""
        try:
            files = await self._files()
        except StoreError as error:
            raise SourceUnavailable(error.message) from None
        return await asyncio.to_thread(self._load, files)

    def _load(self, files: Mapping[str, str]) -> list[ToolSpec]:
        problems: list[object] = []
        read: dict[str, tuple[str, list[ToolSpec]]] = {}
        for name, text in files.items():
            known = self._read.get(name)
            try:
                # A file is read again when it has changed.
                same = known is not None and known[0] == text
                read[name] = known if known is not None and same else (text, specs_of(name, text))
            except InvalidSpecs as error:
                problems += error.problems
        self._read = read
        if problems:
            raise InvalidSpecs(problems[:MAX_PROBLEMS])
        return [spec for _, specs in read.values() for spec in specs]


def specs_of(name: str, text: str) -> list[ToolSpec]:
    """The specs of a tool file, if none of them names code; `InvalidSpecs` where one does."""
    found = parse(text.encode("utf-8", "surrogatepass"), file=name)
    origin = Origin(_KIND, name)
    specs = read_tools(found.value, file=name, origin=origin, line_of=found.line_of)
    return data_only(specs, file=name)
