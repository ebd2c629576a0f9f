"""`export_reasoning_canvas`: hypotheses and failures as a canvas, and in a file if asked for."""

import posixpath
from typing import Any

import msgspec
import orjson

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.canvas.canvas import Canvas
from toolgate.tools.canvas.drawing import Graph, drawn
from toolgate.tools.canvas.failures import failures
from toolgate.tools.canvas.gallery import Gallery, Kept, check_name, merged
from toolgate.tools.canvas.hypotheses import hypotheses
from toolgate.tools.means import Means
from toolgate.tools.system.backups import NOTHING, Backups
from toolgate.tools.system.changing import done, planned, remove_empty
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import MEGABYTE
from toolgate.tools.system.threaded import threaded


async def export_reasoning_canvas(
    means: Means,
    call: Call,
    *,
    graph_type: str = "all",
    name: str = "",
    path: str = "",
    session_id: str = "",
) -> dict[str, Any]:
    """Go on with the canvas of that name, and write it where that is asked."""
    caller = call.caller
    name = check_name(name or graph_type)
    graphs: list[Graph] = []
    if graph_type in {"hypothesis", "all"}:
        graphs.append(await hypotheses(means.shelf, caller, session_id))
    if graph_type in {"failure", "all"}:
        graphs.append(await failures(means.journal, caller, session_id))
    fresh = drawn(graphs)
    # So that edits of that file find their canvas, however its path is written then.
    place = Roots.of(means).named(path) if path else ""

    def grown(kept: Kept) -> Kept:
        after = merged(kept, fresh)
        return msgspec.structs.replace(after, graph_type=graph_type, path=place or kept.path)

    _, kept = await Gallery(means.shelf, caller).change(name, grown)
    # All tenants share the roots: nothing is put there that nobody asked for.
    if path:
        written, backup = await _written(means, call, path, kept.canvas)
    else:
        written, backup = None, await Backups(means.shelf, caller).keep(NOTHING, b"")
    return {
        "name": name,
        "graph_type": graph_type,
        "path": written,
        "nodes": len(kept.canvas.nodes),
        "edges": len(kept.canvas.edges),
        "canvas": kept.canvas.plain(),
        "backup": backup,
        "note": _note(kept.canvas),
    }


async def _written(means: Means, call: Call, path: str, canvas: Canvas) -> tuple[str, str]:
    """Where, and what takes it back: written like any file of a tool's."""
    content = orjson.dumps(canvas.plain(), option=orjson.OPT_INDENT_2) + b"\n"
    if len(content) > MEGABYTE:
        raise ToolError("The canvas is larger than 1 MB. Export one graph, or one session, of it.")
    roots = Roots.of(means)
    made = await threaded(roots.make_folders, posixpath.dirname(path))
    try:
        change = await threaded(planned, roots, path, content, mode="overwrite")
        backup = await Backups(means.shelf, call.caller).keep(
            change.backup(tuple(made)), change.kept
        )
        await threaded(done, roots, change)
    except ToolError:
        remove_empty(roots, made)
        raise
    return change.path, backup


def _note(canvas: Canvas) -> str:
    if canvas.nodes:
        return ""
    return (
        "There is nothing to draw yet. Append hypotheses with canvas_append to the pane "
        "'hypothesis'; calls that fail are drawn by themselves."
    )
