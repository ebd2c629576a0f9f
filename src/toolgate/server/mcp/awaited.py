"""Calls of this node's tasks that wait for a worker: looked for together until they are over."""

import asyncio
import contextlib
from typing import Any

from toolgate.errors import StoreError
from toolgate.queue.message import read_output
from toolgate.queue.queue import Kept
from toolgate.runtime import Runtime
from toolgate.server.mcp.tools import Calls

EVERY = 1.0
_AT_ONCE = 500


def result_of(gate: Runtime, calls: Calls, kept: Kept) -> dict[str, Any]:
    """How a queued call ended, as what `tools/call` would have answered."""
    spec = gate.catalog.current.get(kept.tool)
    return calls.told(gate, read_output(kept.output), spec, modern=True)


class Awaited:
    """Of one node. A queued call may take longer than anybody waits for an answer; a task does
    not end before its call.
    """

    def __init__(self, gate: Runtime, calls: Calls) -> None:
        self._gate = gate
        self._calls = calls
        self._wanted: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def result(self, call_id: str) -> dict[str, Any]:
        """Once it is over."""
        wanted = self._wanted[call_id] = asyncio.get_running_loop().create_future()
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="toolgate-mcp-awaited")
        try:
            return await wanted
        finally:
            self._wanted.pop(call_id, None)

    async def close(self) -> None:
        """Nothing is looked for any more."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def _look(self) -> None:
        while self._wanted:
            await asyncio.sleep(EVERY)
            names = list(self._wanted)
            # What is not told now is looked for again.
            with contextlib.suppress(StoreError):
                for start in range(0, len(names), _AT_ONCE):
                    for kept in await self._gate.queue.calls.over(names[start : start + _AT_ONCE]):
                        wanted = self._wanted.get(kept.call_id)
                        if wanted is not None and not wanted.done():
                            wanted.set_result(result_of(self._gate, self._calls, kept))
        self._looking = None
