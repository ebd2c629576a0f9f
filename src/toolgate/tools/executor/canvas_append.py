"""`canvas_append`: puts something at the end of a session's pane."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.canvas.panes import Panes
from toolgate.tools.means import Means


async def canvas_append(
    means: Means, call: Call, *, session_id: str, content: Any, pane: str = "default"
) -> dict[str, Any]:
    """Append it. Its id follows from the call, so that the same call appends once."""
    item = f"item_{call.id.removeprefix('call_')}"
    found = await Panes(means.shelf, call.caller, session_id).append(pane, item, content)
    return {
        "session_id": session_id,
        "pane": pane,
        "item": item,
        "position": [one.id for one in found.items].index(item) + 1,
        "size": found.size,
    }
