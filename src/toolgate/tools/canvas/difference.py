"""What is different between two canvases, by the ids of their nodes and edges."""

from collections.abc import Iterable
from typing import Any

import msgspec

from toolgate.tools.canvas.canvas import Canvas, Edge, Node

_MOST_SHOWN = 500


def difference(before: Canvas, after: Canvas) -> dict[str, Any]:
    """Added, changed and removed."""
    return {
        "nodes": _of(before.nodes, after.nodes),
        "edges": _of(before.edges, after.edges),
    }


def count(told: dict[str, Any]) -> int:
    """How many changes there are."""
    return sum(len(some) for kind in told.values() for some in kind.values())


def _of(before: Iterable[Node | Edge], after: Iterable[Node | Edge]) -> dict[str, Any]:
    old = {one.id: _fields(one) for one in before}
    new = {one.id: _fields(one) for one in after}
    return {
        "added": [_shown(new[name]) for name in new if name not in old],
        "changed": [
            {"id": name, "fields": _changes(old[name], new[name])}
            for name in new
            if name in old and old[name] != new[name]
        ],
        "removed": [_shown(old[name]) for name in old if name not in new],
    }


def _fields(one: Node | Edge) -> dict[str, Any]:
    return msgspec.to_builtins(one)


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    names = [*old, *(name for name in new if name not in old)]
    return {
        name: {"before": _cut(old.get(name)), "after": _cut(new.get(name))}
        for name in names
        if old.get(name) != new.get(name)
    }


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    return {name: _cut(value) for name, value in one.items()}


def _cut(value: Any) -> Any:
    return value[:_MOST_SHOWN] if isinstance(value, str) else value
