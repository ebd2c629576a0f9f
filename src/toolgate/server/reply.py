"""What goes back over the wire: a whole answer, or one that comes in pieces."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

import orjson

Header = tuple[bytes, bytes]
JSON = b"application/json"
PROBLEM = b"application/problem+json"
EVENTS = b"text/event-stream"


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: tuple[Header, ...] = ()


def _nothing() -> None:
    """Nothing is left to do."""


class Stream(NamedTuple):
    """Pieces as they come. Whoever sends them says when it is over, also when nobody reads."""

    pieces: AsyncGenerator[bytes]
    over: Callable[[], None] = _nothing


def reply(value: Any) -> Reply:
    """Done, and this is what came of it."""
    return Reply(200, orjson.dumps(value))
