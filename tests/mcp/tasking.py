"""A client that takes tasks, and speaks the newer revision by hand."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from tests.mcp.house import House

EXTENSION = "io.modelcontextprotocol/tasks"
TAKES: Mapping[str, Any] = {"extensions": {EXTENSION: {}}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
OVER = ("completed", "failed", "cancelled")


class Desk:
    """One client of a house."""

    def __init__(self, house: House, takes: Mapping[str, Any] = TAKES) -> None:
        self.house = house
        self._takes = takes

    def that_is_asked(self) -> "Desk":
        """The same, and its user can be asked."""
        return Desk(self.house, {**self._takes, "elicitation": {}})

    async def raw(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        key: str = "",
        takes: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> tuple[int, Any]:
        """What comes back, whatever it is."""
        told = {CAPABILITIES: self._takes if takes is None else takes, **(meta or {})}
        named = {"Mcp-Name": params["taskId"]} if "taskId" in params else {}
        return await self.house.post(method, params, key=key, meta=told, headers=named)

    async def ask(self, method: str, params: Mapping[str, Any], **more: Any) -> Any:
        """A result."""
        _, found = await self.raw(method, params, **more)
        assert "result" in found, found
        return found["result"]

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        meta: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """A call, and its result or its task."""
        params = {"name": tool, "arguments": dict(args or {}), **more}
        return await self.ask("tools/call", params, key=key, meta=meta)

    async def get(self, made: Mapping[str, Any], key: str = "") -> Any:
        """How a task stands."""
        return await self.ask("tasks/get", {"taskId": made["taskId"]}, key=key)

    async def update(self, made: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
        """Answer what it asks."""
        return await self.ask("tasks/update", {"taskId": made["taskId"], "inputResponses": said})

    async def until_it_is(self, made: Mapping[str, Any], *wanted: str, key: str = "") -> Any:
        """Wait for it."""
        deadline = time.monotonic() + 20
        while (found := await self.get(made, key))["status"] not in wanted:
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.01)
        return found

    async def over(self, made: Mapping[str, Any], key: str = "") -> Any:
        """Wait for its end."""
        return await self.until_it_is(made, *OVER, key=key)
