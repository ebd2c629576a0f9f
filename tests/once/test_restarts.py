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

from tests.house import until
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
# Owners that are killed, each with a call of every kind.
DEAD = 4


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


async def test_a_server_that_restarts_while_lost_calls_are_looked_after_strands_none(
    server: Server, nest: Nest, recorder: Recorder, tmp_path: Path
) -> None:
    tools = {f"{tool}-{number}": tool for number in range(DEAD) for tool in ("put", "pay", "send")}
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        async with Staff(nest, tmp_path, server.dsn, recorder.port) as staff:
            dead = [await staff.start(lease=LEASE) for _ in range(DEAD)]
            for key, tool in tools.items():
                owner = dead[int(key.rpartition("-")[2])]
                # Whoever runs it again is held as well, and so in the middle of it.
                owner.call(tool, key, hold="after")
            await until(lambda: set().union(*(one.held for one in dead)) == set(tools))
            for one in dead:
                one.kill()
            fresh = await staff.start(lease=LEASE)
            await until(lambda: bool(fresh.held), seconds=LEASE + 30)
            for how in (signal.SIGQUIT, signal.SIGINT):
                os.kill(server.pid, how)
                await loop.run_in_executor(thread, again, server)
            for key in tools:
                fresh.go(key)
            books = Books(server.dsn)
            try:
                async with asyncio.timeout(LEASE + 60):
                    await books.closed()
                rows = {row.of: row for row in await books.rows()}
            finally:
                await books.close()
            assert not fresh.gone.is_set()
        server.stop()
    assert rows.keys() == tools.keys()
    for key, tool in tools.items():
        assert rows[key].state == ("unknown" if tool == "pay" else "succeeded"), rows[key]
        assert rows[key].fence >= 2
        # What may be repeated may have been; nothing else was.
        assert recorder.counts(tool)[key] == 1 or tool == "put"


def again(server: Server) -> None:
    server.stop()
    server.start()
