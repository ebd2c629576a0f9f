"""`document_query`: passages of ingested documents that are near a question."""

from collections.abc import Mapping
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.documents.library import Kept, Library
from toolgate.tools.meaning.search import Hit
from toolgate.tools.means import Means

_LONGEST = 2_000
_MOST = 5
# Below this, what is found has most likely nothing to do with the question.
_LEAST = 0.6


async def document_query(means: Means, call: Call, *, query: str) -> dict[str, Any]:
    """Find passages in the documents of the persona or agent that calls."""
    if not query.strip():
        raise ToolError("The query is empty. Ask a question, or name what to look for.")
    if len(query) > _LONGEST:
        raise ToolError(f"A query has at most {_LONGEST:,} characters. Shorten it.")
    library = Library(means, call.caller)
    known = await library.all()
    hits = await library.ask(query, known) if known else []
    near = [hit for hit in hits[:_MOST] if hit.score >= _LEAST]
    told: dict[str, Any] = {
        "passages": [_told(hit, known) for hit in near],
        "documents": len(known),
    }
    if not known:
        told["note"] = "There are no documents yet. Read one with document_ingest first."
    elif not near:
        told["note"] = "No passage is near this question. Ask it in other words."
    return told


def _told(hit: Hit, known: Mapping[str, Kept]) -> dict[str, Any]:
    document, _, number = hit.thing.key.partition("/")
    body = hit.thing.body
    record = known[document]
    return {
        "text": body["text"],
        "score": hit.score,
        "source": record.sources[0],
        "document": document,
        "title": record.title,
        "heading": body["heading"],
        "page": body["page"],
        "number": int(number) + 1,
    }
