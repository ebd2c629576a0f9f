"""Whether whoever waits for a person's word is still there to hear it. Its door knows."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_left: ContextVar[asyncio.Event | None] = ContextVar("left", default=None)


@contextmanager
def until(left: asyncio.Event) -> Generator[None]:
    """Calls made within this stop waiting for a person once it is set. What runs goes on."""
    token = _left.set(left)
    try:
        yield
    finally:
        _left.reset(token)


def has_left() -> bool:
    """Whether nobody hears the answer any more, as far as its door can tell."""
    left = _left.get()
    return left is not None and left.is_set()
