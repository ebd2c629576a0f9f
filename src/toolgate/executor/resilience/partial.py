"""Tools that stream: the pieces are the result, and on a timeout what there is of it."""

from typing import Any

import orjson

# Of a result that was cut off, no more than an answer holds without being kept aside.
_MOST = 100_000


def whole(pieces: list[Any]) -> Any:
    """All pieces as one value: texts are one text."""
    if pieces and all(type(piece) is str for piece in pieces):
        return "".join(pieces)
    return pieces


def produced(pieces: list[Any], limit: int | None) -> Any:
    """What there was by the end of the time, from its beginning; `None` if there was nothing."""
    left = limit or _MOST
    kept: list[Any] = []
    for piece in pieces:
        left -= len(orjson.dumps(piece))
        if left < 0:
            break
        kept.append(piece)
    return whole(kept) if kept else None
