"""How a graph becomes a canvas: cards in columns, with a frame around them."""

from collections.abc import Sequence

import msgspec

from toolgate.tools.canvas.canvas import Canvas, Edge, Group, Node, Text

_WIDTH = 360
_GAP = 80
_LINE = 26
_LEAST, _MOST = 80, 420
_LETTERS = 40
_FRAME = 40
_LONGEST_TEXT = 4_000


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A text in a column of the graph."""

    id: str
    text: str
    column: int = 0
    color: str = ""


class Arrow(msgspec.Struct, frozen=True, kw_only=True):
    """From one card to another; the same two have one for each label."""

    begin: str
    end: str
    label: str
    color: str = ""


class Graph(msgspec.Struct, frozen=True):
    """Cards in the order they are drawn."""

    title: str
    cards: Sequence[Card] = ()
    arrows: Sequence[Arrow] = ()


def drawn(graphs: Sequence[Graph]) -> Canvas:
    """Graphs below each other; one without cards is left out."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    top = 0
    for graph in graphs:
        if not graph.cards:
            continue
        boxes = _boxes(graph.cards, top)
        right = max(box.x + box.width for box in boxes) + _FRAME
        bottom = max(box.y + box.height for box in boxes) + _FRAME
        frame = Group(
            id=f"group:{graph.title.lower()}",
            x=-_FRAME,
            y=top - _FRAME,
            width=right + _FRAME,
            height=bottom - top + _FRAME,
            label=graph.title,
        )
        nodes += [frame, *boxes]
        edges += [_edge(arrow) for arrow in graph.arrows]
        top = bottom + 2 * _FRAME
    return Canvas(tuple(nodes), tuple(edges))


def _boxes(cards: Sequence[Card], top: int) -> list[Text]:
    heights: dict[int, int] = {}
    boxes: list[Text] = []
    for card in cards:
        text = card.text[:_LONGEST_TEXT]
        lines = sum(1 + len(line) // _LETTERS for line in text.splitlines())
        height = min(_MOST, max(_LEAST, 40 + lines * _LINE))
        y = heights.get(card.column, top)
        x = card.column * (_WIDTH + _GAP)
        boxes.append(
            Text(id=card.id, x=x, y=y, width=_WIDTH, height=height, text=text, color=card.color)
        )
        heights[card.column] = y + height + _GAP // 2
    return boxes


def _edge(arrow: Arrow) -> Edge:
    return Edge(
        id=f"{arrow.begin}>{arrow.end}:{arrow.label}"[:200],
        from_node=arrow.begin,
        from_side="right",
        to_node=arrow.end,
        to_side="left",
        label=arrow.label,
        color=arrow.color,
    )
