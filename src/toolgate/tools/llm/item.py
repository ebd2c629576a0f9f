"""A text that is compared, with the name that it is known by."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from toolgate.errors import ToolError

_MOST_CHARACTERS = 400_000
_DIGEST = 12


class Item(msgspec.Struct, frozen=True):
    """One of them; its id is told in answers, and replaces the one that had it."""

    id: str
    text: str


def items_of(given: Sequence[Any]) -> list[Item]:
    """As a caller writes them: plain texts, or with an id of its own."""
    found: dict[str, Item] = {}
    for one in given:
        text = one if isinstance(one, str) else one["text"]
        key = "" if isinstance(one, str) else one.get("id", "")
        item = Item(key or _named(text), text)
        if key and item.id in found and found[key].text != text:
            raise ToolError(f"Two items have the id {key!r}. Give each an id of its own.")
        found[item.id] = item
    if sum(len(item.text) for item in found.values()) > _MOST_CHARACTERS:
        raise ToolError(
            f"All items together are longer than {_MOST_CHARACTERS:,} characters. Give fewer, or "
            "keep them in an `index` over several calls."
        )
    return list(found.values())


def _named(text: str) -> str:
    """The same text is the same item."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
