"""Tools that several suites here call, and the lock that a blocking one waits for."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolgate import tool


@tool(effect="irreversible")
async def pay(amount: int, to: str, notes: list[str] | None = None) -> dict[str, Any]:
    """Pay."""
    return {"amount": amount, "to": to, "notes": notes}


@contextmanager
def held() -> Generator[threading.Event]:
    """A lock that a blocking tool waits for; opened at the end, so that no thread is left."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


async def endless() -> None:
    await asyncio.Event().wait()
