"""`import_canvas_edits`: a canvas that somebody has edited, and what they have changed."""

import posixpath
from typing import Any

import orjson

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.canvas.canvas import Canvas, read_canvas
from toolgate.tools.canvas.difference import count, difference
from toolgate.tools.canvas.gallery import Gallery, check_name, edited
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

_MOST_BYTES = 1_000_000


async def import_canvas_edits(
    means: Means,
    call: Call,
    *,
    path: str = "",
    canvas: dict[str, Any] | None = None,
    name: str = "",
) -> dict[str, Any]:
    """Read it, keep it, and tell what is different from what was kept."""
    if (canvas is None) == (not path):
        raise ToolError("Give either the path of an edited canvas file, or the canvas itself.")
    given = canvas if canvas is not None else await _read(means, path)
    after = read_canvas(given)
    if len(orjson.dumps(after.plain())) > _MOST_BYTES:
        raise ToolError("The canvas is larger than 1 MB. Split it.")
    gallery = Gallery(means.shelf, call.caller)
    if path and not name:
        name = await gallery.at(Roots.of(means).named(path)) or _stem(path)
    name = check_name(name or "imported")
    before, _ = await gallery.change(name, lambda kept: edited(kept, after))
    told = difference(Canvas() if before is None else before.canvas, after)
    return {
        "name": name,
        "created": before is None,
        "changes": count(told),
        "nodes": told["nodes"],
        "edges": told["edges"],
    }


async def _read(means: Means, path: str) -> Any:
    content = await threaded(Roots.of(means).read, path, most=_MOST_BYTES)
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ToolError(f"The file is no JSON: {str(error)[:200]}.") from None


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]
