"""Hypotheses as agents append them to their panes, and how one leads to another."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from toolgate.caller import Caller
from toolgate.shelf import Shelf
from toolgate.tools.canvas.drawing import Arrow, Card, Graph
from toolgate.tools.canvas.panes import Item, Panes, sessions_of

PANES = ("hypothesis", "hypotheses")
_TEXTS = ("hypothesis", "text", "title")
_COLORS = {"supported": "4", "confirmed": "4", "refuted": "1", "rejected": "1", "open": "5"}
_LINKS = {"parent": "leads to", "supports": "supports", "contradicts": "contradicts"}
_RED = "1"
_MOST_SESSIONS = 50
_MOST_CARDS = 300
_DEEPEST = 12


async def hypotheses(shelf: Shelf, caller: Caller, session: str) -> Graph:
    """Those of one session, or of the caller's latest."""
    names = [session] if session else (await sessions_of(shelf, caller))[:_MOST_SESSIONS]
    cards: list[Card] = []
    arrows: list[Arrow] = []
    for name in names:
        panes = Panes(shelf, caller, name)
        items = [item for pane in PANES for item in (await panes.read(pane)).items]
        some, between = _graph(items)
        cards += some
        arrows += between
    shown = cards[:_MOST_CARDS]
    there = {card.id for card in shown}
    return Graph("Hypotheses", shown, [one for one in arrows if {one.begin, one.end} <= there])


def _graph(items: Sequence[Item]) -> tuple[list[Card], list[Arrow]]:
    """Of one session. A later item with the same id is the newer word on a hypothesis."""
    latest: dict[str, dict[str, Any]] = {}
    ids: dict[str, str] = {}
    for item in items:
        content = _content(item.content)
        name = str(content.get("id") or item.id)
        ids.setdefault(name, item.id)
        latest[name] = {**latest.get(name, {}), **content}
    arrows = [
        Arrow(begin=_id(ids[begin]), end=_id(ids[end]), label=label, color=color)
        for name, content in latest.items()
        for begin, end, label, color in _links(name, content)
        if begin in ids and end in ids and begin != end
    ]
    above = {arrow.end: arrow.begin for arrow in arrows if arrow.label == _LINKS["parent"]}
    cards = [
        Card(
            id=_id(ids[name]),
            text=_text(content),
            column=_column(_id(ids[name]), above),
            color=_COLORS.get(str(content.get("status", "")).lower(), ""),
        )
        for name, content in latest.items()
    ]
    return cards, arrows


def _content(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {"text": str(given)}


def _links(name: str, content: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for field, label in _LINKS.items():
        given = content.get(field)
        others = cast("list[Any]", given) if isinstance(given, list) else [given]
        for other in others:
            if other is None:
                continue
            if field == "parent":
                yield str(other), name, label, ""
            else:
                yield name, str(other), label, _RED if field == "contradicts" else ""


def _text(content: dict[str, Any]) -> str:
    lines = [str(next((content[word] for word in _TEXTS if content.get(word)), "(no words)"))]
    if content.get("status") or content.get("confidence") is not None:
        confidence = content.get("confidence")
        sure = "" if confidence is None else f" ({confidence})"
        lines.append(f"*{content.get('status') or 'open'}{sure}*")
    evidence = content.get("evidence")
    for one in cast("list[Any]", evidence) if isinstance(evidence, list) else [evidence]:
        if one:
            lines.append(f"- {one}")  # noqa: PERF401  a list of nothing has no lines
    return "\n".join(lines)


def _column(name: str, above: dict[str, str]) -> int:
    """How many stand above it; a circle has an end here."""
    column = 0
    while name in above and column < _DEEPEST:
        name = above[name]
        column += 1
    return column


def _id(item: str) -> str:
    return f"hypothesis:{item}"
