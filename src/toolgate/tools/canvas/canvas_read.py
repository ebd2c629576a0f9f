"""`canvas_read`: what stands in a session's pane."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.canvas.panes import Panes
from toolgate.tools.means import Means


async def canvas_read(
    means: Means,
    call: Call,
    *,
    session_id: str,
    pane: str = "default",
    after: int = 0,
    limit: int = 100,
) -> dict[str, Any]:
    """Items in the order they came, those behind a position."""
    panes = Panes(means.shelf, call.caller, session_id)
    items = (await panes.read(pane)).items
    shown = items[after : after + limit]
    return {
        "session_id": session_id,
        "pane": pane,
        "items": [one.told(after + number) for number, one in enumerate(shown, 1)],
        "count": len(items),
        "panes": list(await panes.names()),
    }
