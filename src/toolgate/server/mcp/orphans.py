"""Tasks whose node is gone and whose call a worker has: told as the queue knows the call."""

from collections.abc import Mapping
from typing import Any

from toolgate import clock
from toolgate.errors import CallNotFound
from toolgate.runtime import Runtime
from toolgate.server.mcp.answers import CALL_ID
from toolgate.server.mcp.awaited import result_of
from toolgate.server.mcp.task import dated
from toolgate.server.mcp.tools import Calls

_RUNS_ON = "The node that it was begun at is gone; its call goes on with a worker."


class Orphans:
    """Of one node, about the tasks of others."""

    def __init__(self, gate: Runtime, calls: Calls) -> None:
        self._gate = gate
        self._calls = calls

    async def told(self, tenant: str, shown: Mapping[str, Any]) -> dict[str, Any] | None:
        """How the task stands; nothing where its call ended with its node.

        It lasts as long as its call may still take, whenever its node was heard of last, and as
        long after its end as any other.
        """
        call_id = shown.get("_meta", {}).get(CALL_ID)
        if not call_id or shown["status"] != "working":
            return None
        try:
            found = await self._gate.find(tenant, call_id)
        except CallNotFound:
            return None
        if found.kept is None:
            return None
        if found.is_open:
            return dated(shown, clock.unix_ns()) | {"statusMessage": _RUNS_ON}
        over = {name: value for name, value in shown.items() if name != "statusMessage"}
        result = result_of(self._gate, self._calls, found.kept)
        ended_ns = found.kept.ended_ns
        return dated(over, ended_ns, ended_ns) | {"status": "completed", "result": result}
