"""Tasks whose node is gone and whose call a worker has: told as the queue knows the call."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import CallNotFound
from toolgate.queue.message import read_output
from toolgate.runtime import Runtime
from toolgate.server.mcp.answers import CALL_ID
from toolgate.server.mcp.tools import Calls

_RUNS_ON = "The node that it was begun at is gone; its call goes on with a worker."


class Orphans:
    """Of one node, about the tasks of others."""

    def __init__(self, gate: Runtime, calls: Calls) -> None:
        self._gate = gate
        self._calls = calls

    async def told(self, tenant: str, shown: Mapping[str, Any]) -> dict[str, Any] | None:
        """How the task stands; nothing where its call ended with its node."""
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
            return {**shown, "statusMessage": _RUNS_ON}
        spec = self._gate.catalog.current.get(found.kept.tool)
        output = read_output(found.kept.output)
        result = self._calls.told(self._gate, output, spec, modern=True)
        over = {name: value for name, value in shown.items() if name != "statusMessage"}
        return over | {"status": "completed", "result": result}
