"""A store with its tables and nothing in them, made once and copied.

Making them takes longer than most tests; what a first start does has tests of its own.
"""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite


def put_blank(path: Path) -> None:
    """Where nothing is yet, as private as the store would make it."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(_blank())


@cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        place = Path(folder, "toolgate.db")
        # Whoever asks has a loop already.
        thread.submit(asyncio.run, _make(place)).result()
        return place.read_bytes()


async def _make(place: Path) -> None:
    database = Sqlite(place)
    try:
        await migrate(database)
    finally:
        await database.close()
