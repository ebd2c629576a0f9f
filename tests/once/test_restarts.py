"""The store goes away and comes back, again and again, under load; then all is well."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.once.books import Books
from tests.once.load import Load
from tests.once.nest import Nest
from tests.once.recorder import Recorder
from tests.once.staff import Staff
from tests.servers.fixtures import running
from tests.servers.postgres import Postgres as Server

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(900)]
SECONDS = float(os.environ.get("TOOLGATE_ONCE_RESTART_SECONDS", "8"))
WORKERS = 2
LOOPS = 3
LEASE = 3.0


@pytest.fixture
def server() -> Generator[Server]:
    """One of its own: the others' must stay up."""
    yield from running(Server)


def restarted(server: Server, dice: random.Random) -> None:
    """Politely, or as if it had crashed."""
    if dice.random() < 0.5:
        os.kill(server.pid, signal.SIGQUIT)
    server.stop()
    server.start()


async def test_a_server_that_restarts_under_load_loses_nothing_and_doubles_nothing(
    server: Server, nest: Nest, recorder: Recorder, tmp_path: Path
) -> None:
    load, dice = Load(), random.Random(5)  # noqa: S311  the same dice each time
    loop, restarts = asyncio.get_running_loop(), 0
    # The server dies with the thread that starts it.
    with ThreadPoolExecutor(1) as thread:
        async with Staff(nest, tmp_path, server.dsn, recorder.port) as staff:
            hands = [await staff.start(lease=LEASE) for _ in range(WORKERS)]
            loops = [
                asyncio.create_task(load.go_on(lambda hand=hand: hand))
                for hand in hands
                for _ in range(LOOPS)
            ]
            over = time.monotonic() + SECONDS
            while time.monotonic() < over:
                await asyncio.sleep(dice.uniform(1, 3))
                await loop.run_in_executor(thread, restarted, server, dice)
                restarts += 1
            for one in loops:
                one.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            assert restarts >= SECONDS / 10
            assert not any(hand.gone.is_set() for hand in hands)

            books = Books(server.dsn)
            try:
                await load.check(hands[0], recorder, books, within=LEASE + 30)
            finally:
                await books.close()
            tail = await load.fresh(hands[1], 100)
            assert [one and one["status"] for one in tail] == ["success"] * 100
        server.stop()
