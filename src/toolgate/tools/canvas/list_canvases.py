"""`list_canvases`: the canvases that are kept."""

from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.tools.canvas.gallery import Gallery
from toolgate.tools.means import Means


async def list_canvases(means: Means, call: Call) -> dict[str, Any]:
    """By name."""
    found = [
        {
            "name": one.name,
            "graph_type": one.kept.graph_type or None,
            "nodes": len(one.kept.canvas.nodes),
            "edges": len(one.kept.canvas.edges),
            "path": one.kept.path or None,
            "updated": clock.moment_of(one.updated_ns).isoformat(timespec="seconds"),
        }
        for one in await Gallery(means.shelf, call.caller).all()
    ]
    return {"canvases": found, "count": len(found)}
