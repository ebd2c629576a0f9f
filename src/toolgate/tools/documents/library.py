"""Documents that are kept: their passages on the shelf, those of one persona or agent."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.shelf import Place, Thing
from toolgate.tools.meaning.embedding import Embedded, embedded, kept, model_of
from toolgate.tools.meaning.owner import owner_of
from toolgate.tools.meaning.search import Hit, everything, nearest
from toolgate.tools.meaning.words import spaced
from toolgate.tools.means import Means

KIND = "document"
PIECES = "passage"
MOST = 10_000
_BATCH = 500
_DIGITS = 6


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it is on record."""

    id: str
    sources: list[str]
    kind: str
    title: str
    pages: int | None
    passages: int
    characters: int
    model: str
    is_cut: bool = False


class Library:
    """One owner's documents. Its record is written last: what has none is not found."""

    def __init__(self, means: Means, caller: Caller) -> None:
        owner = owner_of(caller)
        self._means = means
        self._caller = caller
        self._records = Place(caller.tenant, KIND, owner)
        self._pieces = Place(caller.tenant, PIECES, owner)

    async def all(self) -> dict[str, Kept]:
        """Every document, by id."""
        things = await everything(self._means.shelf, self._records)
        return {thing.key: msgspec.convert(thing.body, Kept) for thing in things}

    async def has(self, document: str, source: str) -> Kept | None:
        """The one of that id, if its passages can be compared; it goes by this name too."""
        thing = await self._means.shelf.get(self._records, document)
        if thing is None:
            return None
        found = msgspec.convert(thing.body, Kept)
        if found.model != model_of(self._means):
            return None
        if source not in found.sources:
            found = msgspec.structs.replace(found, sources=[*found.sources, source])
            await self._write(found)
        return found

    async def put(self, document: str, source: str, read: dict[str, Any]) -> Kept:
        """Keep what was read of it."""
        pieces: list[dict[str, Any]] = read["passages"]
        if await self._means.shelf.count(self._pieces) + len(pieces) > MOST:
            raise ToolError(
                f"With this document there would be more than {MOST:,} passages, and no room for "
                "more. Ingest a smaller one, or a new version of one that is there."
            )
        for start in range(0, len(pieces), _BATCH):
            batch = pieces[start : start + _BATCH]
            made = await embedded(self._means, self._caller, [_told(one) for one in batch])
            await self._means.shelf.put(self._pieces, _things(document, start, batch, made))
        found = Kept(
            id=document,
            sources=[source],
            kind=read["kind"],
            title=read["title"] or source.rpartition("/")[2],
            pages=read["pages"],
            passages=len(pieces),
            characters=sum(len(one["text"]) for one in pieces),
            model=model_of(self._means),
            is_cut=read["is_cut"],
        )
        await self._write(found)
        return found

    async def replace(self, source: str, by: str) -> str | None:
        """A source has one document: the older one is gone, unless another source has it too."""
        for one in (await self.all()).values():
            if one.id == by or source not in one.sources:
                continue
            left = [name for name in one.sources if name != source]
            if left:
                await self._write(msgspec.structs.replace(one, sources=left))
            else:
                await self._means.shelf.remove(self._records, [one.id])
                await self._means.shelf.remove(
                    self._pieces, [_key(one.id, at) for at in range(one.passages)]
                )
            return one.id
        return None

    async def ask(self, query: str, known: Mapping[str, Kept]) -> list[Hit]:
        """Every passage of these documents, best first."""
        things = [
            thing
            for thing in await everything(self._means.shelf, self._pieces)
            if thing.key.partition("/")[0] in known
        ]
        asked = await embedded(self._means, self._caller, [query])
        return await nearest(query, asked, things)

    async def _write(self, record: Kept) -> None:
        body = msgspec.to_builtins(record)
        await self._means.shelf.put(self._records, [Thing(key=record.id, body=body)])


def document_id(content: bytes) -> str:
    """The same content is the same document."""
    return f"doc_{hashlib.sha256(content).hexdigest()[:24]}"


def _key(document: str, at: int) -> str:
    return f"{document}/{at:0{_DIGITS}}"


def _told(piece: dict[str, Any]) -> str:
    """With its headings, which often say what it is about."""
    return f"{piece['heading']}\n{piece['text']}" if piece["heading"] else piece["text"]


def _things(
    document: str, start: int, batch: Sequence[dict[str, Any]], made: Embedded
) -> list[Thing]:
    return [
        Thing(
            key=_key(document, start + at),
            body={
                **piece,
                "words": spaced(_told(piece)),
                "vector": kept(vector),
                "model": made.model,
            },
        )
        for at, (piece, vector) in enumerate(zip(batch, made.vectors, strict=True))
    ]
