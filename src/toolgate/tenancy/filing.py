"""What an operator says about tool files that are kept in the store: which there are."""

import re
from collections.abc import Mapping

from toolgate.errors import InvalidRequest
from toolgate.tenancy.changes import SetToolFile
from toolgate.tenancy.hand import Hand
from toolgate.tenancy.names import nearest

MOST_FILES = 1_000
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}\Z")


class Filing(Hand):
    """Tool files. Whether one can be used is looked at by whoever brings it."""

    async def put_tool_file(self, name: str, text: str, *, replace: bool = True) -> None:
        """Keep a tool file; `InvalidRequest` where one of its name is not to be replaced."""
        if not _NAME.match(name):
            raise InvalidRequest(
                f"No tool file can be called {name[:80]!r}: write up to 64 letters, digits and "
                "signs of . _ -. Nothing was changed."
            )
        async with self._stepping:
            kept = await self._directory.tool_files()
            if name in kept and not replace:
                raise InvalidRequest(
                    f"{name} is there already; nothing was changed. Another name, or --replace."
                )
            if len(kept) >= MOST_FILES and name not in kept:
                raise InvalidRequest(
                    f"There are {MOST_FILES:,} tool files already; nothing was changed. Remove one."
                )
            if kept.get(name) != text:
                await self._put(SetToolFile(name, text))

    async def remove_tool_file(self, name: str) -> None:
        """A tool file is gone, and its tools with it."""
        async with self._stepping:
            kept = await self._directory.tool_files()
            if name not in kept:
                raise InvalidRequest(
                    f"No tool file {name[:80]!r} is kept in the store; nothing was changed."
                    + nearest(name, kept)
                )
            await self._put(SetToolFile(name, None))

    async def tool_files(self) -> Mapping[str, str]:
        """Those that are kept in the store, by name."""
        return await self._directory.tool_files()
