"""`memory_delete`: takes memories away by their ids."""

from typing import Any

import msgspec

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.memory.keeping import memories_of

_MOST = 100
_LONGEST = 200


async def memory_delete(means: Means, call: Call, *, ids: str) -> dict[str, Any]:
    """Delete memories by ids, with commas between them or as a list in JSON."""
    wanted = list(dict.fromkeys(one.strip() for one in _listed(ids) if one.strip()))
    if not wanted:
        raise ToolError("There is no id. Write those that memory_load gives: mem_1a2b, mem_3c4d.")
    if len(wanted) > _MOST or any(len(one) > _LONGEST for one in wanted):
        raise ToolError(f"At most {_MOST} ids are deleted at once. Call it again for the others.")
    deleted = list(await memories_of(means, call.caller).delete(wanted))
    return {"deleted": deleted, "missing": [one for one in wanted if one not in deleted]}


def _listed(ids: str) -> list[str]:
    if ids.lstrip().startswith("["):
        try:
            return msgspec.json.decode(ids, type=list[str])
        except msgspec.DecodeError:
            raise ToolError(
                "The ids begin like a list in JSON and are none. Write mem_1a2b, mem_3c4d."
            ) from None
    return ids.split(",")
