"""A question to texts that are kept: all of a place are read, and those that are nearest told."""

from collections.abc import Sequence
from typing import Any

import msgspec

from toolgate.shelf import PAGE, Place, Shelf, Thing
from toolgate.tools.meaning.embedding import Embedded
from toolgate.tools.meaning.words import terms
from toolgate.tools.system.threaded import threaded

_DIGITS = 4


class Hit(msgspec.Struct, frozen=True):
    """A thing, and how near it is, from 0 to 1."""

    thing: Thing
    score: float


async def everything(shelf: Shelf, place: Place, *, prefix: str = "") -> list[Thing]:
    """All things of a place whose keys begin so, in order."""
    found: list[Thing] = []
    after = prefix
    while page := await shelf.page(place, after=after):
        of_it = [thing for thing in page if thing.key.startswith(prefix)]
        found += of_it
        after = page[-1].key
        if len(page) < PAGE or len(of_it) < len(page):
            break
    return found


async def nearest(query: str, asked: Embedded, things: Sequence[Thing]) -> list[Hit]:
    """All of them with their scores, the best first, and of equals the newest.

    A thing of another model has no vector that could be compared: its words count.
    """
    if not things:
        return []
    bodies = [thing.body for thing in things]
    found = await threaded(_scores, query, asked, bodies)
    hits = [Hit(thing, round(score, _DIGITS)) for thing, score in zip(things, found, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.thing.created_ns, hit.thing.key))


async def alike(vector: bytes, kept: Sequence[str]) -> list[float]:
    """Cosines with vectors as they are kept."""
    return [round(one, _DIGITS) for one in await threaded(_cosines, vector, kept)]


def _scores(query: str, asked: Embedded, bodies: Sequence[dict[str, Any]]) -> list[float]:
    from toolgate.tools.meaning.ranking import Text, scores  # noqa: PLC0415  numpy, when needed

    texts = [
        Text(body["words"], body["vector"] if body["model"] == asked.model else "")
        for body in bodies
    ]
    return scores(asked.vectors[0], terms(query), texts)


def _cosines(vector: bytes, kept: Sequence[str]) -> list[float]:
    from toolgate.tools.meaning.ranking import cosines  # noqa: PLC0415  as above

    return cosines(vector, kept)
