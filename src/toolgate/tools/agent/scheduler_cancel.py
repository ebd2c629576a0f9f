"""`scheduler_cancel`: takes back what this agent has scheduled."""

from typing import Any

import msgspec

from toolgate.call import Call
from toolgate.ledger.history import owner_of
from toolgate.tools.agent.diary import Diary
from toolgate.tools.means import Means


async def scheduler_cancel(means: Means, call: Call, *, id: str) -> dict[str, Any]:  # noqa: A002
    """Cancel it. What has begun to run goes on."""
    diary = Diary(means.shelf, call.caller.tenant)
    try:
        found = await diary.find(id)
    except msgspec.ValidationError:
        found = None
    # One of another agent and one that is not there are told in the same words.
    if found is None or found.appointment.owner != owner_of(call.caller):
        note = "You have scheduled nothing of this id, or it has run already."
        return {"id": id, "cancelled": False, "note": note}
    return {"id": id, "cancelled": await diary.remove(id), "note": ""}
