"""`canvas_remove`: takes an item out of a session's pane."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.canvas.panes import Panes
from toolgate.tools.means import Means


async def canvas_remove(
    means: Means, call: Call, *, session_id: str, item: str, pane: str = "default"
) -> dict[str, Any]:
    """Take it away; one that is not there is told as such."""
    removed = await Panes(means.shelf, call.caller, session_id).remove(pane, item)
    return {"session_id": session_id, "pane": pane, "item": item, "removed": removed}
