"""`document_ingest`: reads a document and keeps it, so that passages of it can be found."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.documents.attachment import Attachment, attached
from toolgate.tools.documents.block import MOST_CHARACTERS
from toolgate.tools.documents.library import Kept, Library, document_id
from toolgate.tools.means import Means

_SECONDS = 60.0


async def document_ingest(means: Means, call: Call, *, attachment_id: str) -> dict[str, Any]:
    """Read a document, cut it into passages and keep them with their meaning."""
    async with means.large.held():
        return await _ingested(means, call, await attached(means, call, attachment_id))


async def _ingested(means: Means, call: Call, found: Attachment) -> dict[str, Any]:
    library = Library(means, call.caller)
    key = document_id(found.content)
    record = await library.has(key, found.name)
    is_known = record is not None
    if record is None:
        read = await means.workers.ask(
            "toolgate.tools.documents.reading:read",
            {"name": found.name},
            seconds=_SECONDS,
            content=found.content,
        )
        record = await library.put(key, found.name, read.value)
    replaced = await library.replace(found.name, by=key)
    return _told(record, found.name, unchanged=is_known, replaced=replaced)


def _told(record: Kept, source: str, *, unchanged: bool, replaced: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "document": record.id,
        "source": source,
        "kind": record.kind,
        "title": record.title,
        "passages": record.passages,
        "pages": record.pages,
        "characters": record.characters,
        "unchanged": unchanged,
        "replaced": replaced,
    }
    if record.is_cut:
        told["note"] = (
            f"The document is longer than what is kept of one ({MOST_CHARACTERS:,} characters, "
            "2,000 pages): only its beginning can be found."
        )
    return told
