"""A canvas as JSON Canvas 1.0 has it: nodes of four kinds, and edges between them."""

from typing import Annotated, Any, Literal, cast

import msgspec

from toolgate.errors import ToolError

MOST_NODES = 2_000
MOST_EDGES = 5_000
_FAR = 10_000_000
_NUMBERS = ("x", "y", "width", "height")
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Coordinate = Annotated[int, msgspec.Meta(ge=-_FAR, le=_FAR)]
Length = Annotated[int, msgspec.Meta(ge=0, le=_FAR)]
Color = Annotated[str, msgspec.Meta(pattern="^([1-6]|#[0-9A-Fa-f]{6}|)$")]
Words = Annotated[str, msgspec.Meta(max_length=20_000)]
Side = Literal["", "top", "right", "bottom", "left"]
End = Literal["none", "arrow"]


class _Box(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    omit_defaults=True,
    rename="camel",
):
    """What every node has."""

    id: Id
    x: Coordinate
    y: Coordinate
    width: Length
    height: Length
    color: Color = ""


class Text(_Box, frozen=True, kw_only=True, tag="text"):
    """Markdown."""

    text: Words


class File(_Box, frozen=True, kw_only=True, tag="file"):
    """A file, and a place in it."""

    file: Words
    subpath: Annotated[str, msgspec.Meta(pattern="^(#|$)", max_length=1_000)] = ""


class Link(_Box, frozen=True, kw_only=True, tag="link"):
    """An address."""

    url: Words


class Group(_Box, frozen=True, kw_only=True, tag="group"):
    """What lies within it belongs together."""

    label: Words = ""
    background: Words = ""
    background_style: Literal["", "cover", "ratio", "repeat"] = ""


Node = Text | File | Link | Group


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """From one node to another."""

    id: Id
    from_node: Id
    to_node: Id
    from_side: Side = ""
    from_end: End = "none"
    to_side: Side = ""
    to_end: End = "arrow"
    color: Color = ""
    label: Words = ""


class Canvas(msgspec.Struct, frozen=True):
    """All of it."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "nodes": [msgspec.to_builtins(node) for node in self.nodes],
            "edges": [msgspec.to_builtins(edge) for edge in self.edges],
        }


def read_canvas(given: Any) -> Canvas:
    """A canvas that holds by itself, or `ToolError` with what is wrong with it."""
    try:
        canvas = msgspec.convert(_rounded(given), Canvas)
    except msgspec.ValidationError as error:
        raise ToolError(f"This is no JSON Canvas: {str(error)[:200]}.") from None
    if len(canvas.nodes) > MOST_NODES or len(canvas.edges) > MOST_EDGES:
        raise ToolError(
            f"A canvas has at most {MOST_NODES:,} nodes and {MOST_EDGES:,} edges here. Split it."
        )
    nodes = {node.id for node in canvas.nodes}
    if len(nodes) < len(canvas.nodes) or len({edge.id for edge in canvas.edges}) < len(
        canvas.edges
    ):
        raise ToolError("Two nodes or two edges of the canvas have the same id. Name them apart.")
    for edge in canvas.edges:
        if not {edge.from_node, edge.to_node} <= nodes:
            raise ToolError(
                f"The edge {edge.id[:60]!r} leads from or to a node that is not there. Add the "
                "node, or remove the edge."
            )
    return canvas


def _rounded(given: Any) -> Any:
    """Some editors write places as fractions."""
    if not isinstance(given, dict):
        return given
    canvas = cast("dict[str, Any]", given)
    nodes = canvas.get("nodes")
    if not isinstance(nodes, list):
        return canvas
    return {**canvas, "nodes": [_whole(node) for node in cast("list[Any]", nodes)]}


def _whole(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    given = cast("dict[str, Any]", node)
    places = {
        name: round(given[name])
        for name in _NUMBERS
        if isinstance(given.get(name), float) and abs(given[name]) < _FAR
    }
    return given | places
