"""Entries of an overlay that mean no tool: a misspelt one would be believed to hold."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

from toolgate.sources.mcp.overlay import ON_ERROR, Overlay, fits, is_pattern
from toolgate.sources.overlay import Entry
from toolgate.spec.effect import Effect

# What makes no tool stricter: where it is missed, nothing is allowed that should not be.
_WORDS = frozenset({"description", "display_name", "category", "categories", "tags", ON_ERROR})
_LOOSE: Mapping[str, Any] = {
    "effect": Effect.PURE,
    "enabled": True,
    "destructive": False,
    "requires_confirmation": False,
    "requires_approval": False,
}
_CLOSE = 0.75
_MOST_MEANT = 3
_MOST_COMPARED = 1_000


class Unheard(NamedTuple):
    """An entry without a tool: the sentence, and the tools that it may be meant for."""

    says: str
    meant: tuple[str, ...]


def unheard(overlay: Overlay, tools: Collection[str]) -> list[Unheard]:
    """What in it means none of the server's tools. Where it would have made one stricter, those
    that it may mean are named: without it they would be looser than somebody believes.
    """
    named = {entry.pattern for entry in overlay.entries}
    free = [one for one in tools if one not in named]
    return [
        _unheard(overlay.file, entry, tools, free)
        for entry in overlay.entries
        if not any(fits(entry, one) for one in tools)
    ]


def _unheard(file: str, entry: Entry, tools: Iterable[str], free: Iterable[str]) -> Unheard:
    place = file if entry.line is None else f"{file}:{entry.line}"
    if is_pattern(entry):
        return Unheard(f"{place}: no tool of the server fits {entry.pattern[:80]!r}", ())
    meant = _like(entry.pattern, free)
    close = meant or _like(entry.pattern, tools)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    says = f"{place}: the server has no tool {entry.pattern[:80]!r}{hint}"
    return Unheard(says, () if _is_harmless(entry) else meant)


def _is_harmless(entry: Entry) -> bool:
    return all(
        field in _WORDS or (field in _LOOSE and value == _LOOSE[field])
        for field, value in entry.fields.items()
    )


def _like(name: str, tools: Iterable[str]) -> tuple[str, ...]:
    by_letters = {one.casefold(): one for one in islice(tools, _MOST_COMPARED)}
    found = get_close_matches(name.casefold()[:200], by_letters, n=_MOST_MEANT, cutoff=_CLOSE)
    return tuple(by_letters[one] for one in found)
