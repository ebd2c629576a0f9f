"""`memory_forget`: takes away all memories about something, and says which those were."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.memory.condition import read_filter
from toolgate.tools.memory.keeping import check, memories_of

_THRESHOLD = 0.75


async def memory_forget(
    means: Means,
    call: Call,
    *,
    query: str,
    threshold: float = _THRESHOLD,
    filter: str = "",  # noqa: A002  the name that the agent system gives it
) -> dict[str, Any]:
    """Delete memories near a query."""
    check(query, threshold)
    memories = memories_of(means, call.caller)
    found = await memories.recall(query, read_filter(filter))
    above = [one for one in found if one.score >= threshold]
    gone = set(await memories.delete([one.memory.id for one in above]))
    told = [one.told() for one in above if one.memory.id in gone]
    return {"forgotten": told, "count": len(told), "left": len(found) - len(told)}
