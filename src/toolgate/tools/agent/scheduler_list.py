"""`scheduler_list`: what this agent has scheduled."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.diary import Diary
from toolgate.tools.means import Means


async def scheduler_list(means: Means, call: Call) -> dict[str, Any]:
    """The next one first."""
    found = await Diary(means.shelf, call.caller.tenant).of(call.caller)
    tasks = [one.told() for one in sorted(found, key=lambda one: (one.next_ns, one.id))]
    return {"tasks": tasks, "count": len(tasks)}
