"""`memory_withdraw`: takes back a memory that was saved a short while ago."""

from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.memory.keeping import memories_of

_LATELY_NS = 24 * 3_600 * 10**9
# Behind the time, a call's id has so many digits that tell it from others of that moment.
_REST = 12


async def memory_withdraw(means: Means, call: Call, *, id: str) -> dict[str, Any]:  # noqa: A002
    """Take it away; one that is not there is told as such. What is older needs more than a slip."""
    wanted = id.strip()
    if not call.asked.undo_of and _age_ns(wanted) > _LATELY_NS:
        raise ToolError(
            "Only what was saved within the last 24 hours is withdrawn; nothing was changed. "
            "memory_delete deletes older memories."
        )
    gone = await memories_of(means, call.caller).delete([wanted])
    return {"id": wanted, "withdrawn": bool(gone)}


def _age_ns(memory: str) -> int:
    """By its id, which begins with the moment that it was saved at."""
    try:
        saved = int(memory.removeprefix("mem_")[:-_REST], 16)
    except ValueError:
        raise ToolError(
            "That is no id of a memory. Write the one that memory_save gave: mem_1a2b…"
        ) from None
    return clock.unix_ns() - saved
