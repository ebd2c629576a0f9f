"""`memory_load`: what was saved before, by meaning and by words."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.memory.condition import read_filter
from toolgate.tools.memory.keeping import check, memories_of

_THRESHOLD = 0.7
_LIMIT = 5
_MOST = 100


async def memory_load(
    means: Means,
    call: Call,
    *,
    query: str,
    threshold: float = _THRESHOLD,
    limit: int = _LIMIT,
    filter: str = "",  # noqa: A002  the name that the agent system gives it
) -> dict[str, Any]:
    """Look up memories near a query."""
    check(query, threshold)
    if not 1 <= limit <= _MOST:
        raise ToolError(f"A limit is a whole number from 1 to {_MOST}.")
    memories = memories_of(means, call.caller)
    found = await memories.recall(query, read_filter(filter))
    below = [one.score for one in found if one.score < threshold]
    told: dict[str, Any] = {
        "memories": [one.told() for one in found if one.score >= threshold][:limit],
        "searched": len(found),
        "best_below": max(below, default=None),
    }
    if note := await memories.note():
        told["note"] = note
    return told
