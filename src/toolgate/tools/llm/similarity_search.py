"""`similarity_search`: which of some texts mean nearly the same as another."""

from collections.abc import Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.llm.index import Index
from toolgate.tools.llm.item import Item, items_of
from toolgate.tools.meaning.embedding import embedded, kept
from toolgate.tools.meaning.search import alike
from toolgate.tools.means import Means

_LIMIT = 5
_LOWEST = -1.0


async def similarity_search(
    means: Means,
    call: Call,
    *,
    query: str = "",
    items: Sequence[Any] = (),
    index: str = "",
    remove: Sequence[str] = (),
    limit: int = _LIMIT,
    threshold: float = _LOWEST,
) -> dict[str, Any]:
    """Find the texts nearest to a query, among given items or in an index that is kept."""
    if not query and not index:
        raise ToolError("Give a `query` to compare the items with, or an `index` to keep them in.")
    if remove and not index:
        raise ToolError("`remove` takes items out of an index: name it as `index`.")
    given = items_of(items)
    removed: list[str] = []
    if index:
        shelf = Index(means, call.caller, index)
        removed = await shelf.remove(remove)
        await shelf.put(given)
        compared = await shelf.all()
    elif given:
        made = await embedded(means, call.caller, [item.text for item in given])
        compared = [(item, kept(one)) for item, one in zip(given, made.vectors, strict=True)]
    else:
        raise ToolError("Give `items` to search in, or the name of an `index` that holds some.")
    asked = await embedded(means, call.caller, [query] if query else [])
    matches = await _matches(asked.vectors, compared)
    told: dict[str, Any] = {
        "model": asked.model,
        "compared": len(compared),
        "matches": [one for one in matches if one["score"] >= threshold][:limit],
    }
    if index:
        told |= {"index": index, "kept": len(given), "removed": removed}
        if query and not compared:
            told["note"] = (
                f"The index {index!r} holds nothing. Check its name, or give `items` to put in it."
            )
    return told


async def _matches(
    query: Sequence[bytes], compared: Sequence[tuple[Item, str]]
) -> list[dict[str, Any]]:
    if not query or not compared:
        return []
    scores = await alike(query[0], [vector for _item, vector in compared])
    matches = [
        {"id": item.id, "text": item.text, "score": score}
        for (item, _vector), score in zip(compared, scores, strict=True)
    ]
    return sorted(matches, key=lambda one: (-one["score"], one["id"]))
