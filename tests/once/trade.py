"""The tools of a worker. Each does one thing, at the recorder.

Any of them can be held before or after that until it is told to go on, and can fail after it.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from tests.once.far_side import FarSide
from toolgate import Call, ToolError, tool


class Trade:
    """One tool for each way in which an effect can be told about, repeated or taken back."""

    def __init__(self, far: FarSide, held: Callable[[str], Awaitable[None]]) -> None:
        self._far = far
        self._held = held

    async def _happen(self, call: Call, key: str, hold: str, down: str = "") -> dict[str, Any]:
        if hold == "before":
            await self._held(key)
        if hold == "first":
            raise ToolError("it cannot be done")
        done = await self._far.ask(
            do="effect", tool=call.spec.name, key=key, down=down, pid=os.getpid(), call=call.id
        )
        if hold == "after":
            await self._held(key)
        if hold == "breaks":
            raise ValueError("it was done, and then something broke")
        return {"number": done["number"]}

    def tools(self) -> list[Callable[..., Any]]:
        @tool(effect="irreversible")
        async def pay(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="irreversible", idempotency_key=["key"])
        async def mail(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="irreversible", requires_approval=True)
        async def careful(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="idempotent")
        async def put(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
        async def send(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold, call.downstream_key)

        @tool(effect="irreversible", probe={"tool": "happened", "args": {"key": "$args.key"}})
        async def book(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="pure")
        async def happened(key: str) -> dict[str, Any]:
            told = await self._far.ask(do="count", tool="book", key=key)
            return {"happened": told["count"] > 0}

        @tool(effect="compensatable", compensation={"tool": "close", "args": {"key": "$args.key"}})
        async def opened(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
        async def close(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold, call.downstream_key)

        return [pay, mail, careful, put, send, book, happened, opened, close]
