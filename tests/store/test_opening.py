"""Callers that go away while a line is opened or asked: the log hears nothing of it."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from typing import Any

import asyncpg
import pytest

from tests.servers.postgres import Postgres as Server
from toolgate.store import postgres as postgres_
from toolgate.store.opening import Opening
from toolgate.store.postgres import Postgres

pytestmark = pytest.mark.req("D1", "O2")
# The steps of a loop in which a handshake, a statement and its cancellation are done.
STEPS = 60
_TWICE = "SELECT pg_sleep(0.001)"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
async def listening(told: list[str]) -> AsyncGenerator[None]:
    """What a loop tells of failures that nobody asked for."""
    loop = asyncio.get_running_loop()

    def hear(_loop: Any, context: dict[str, Any]) -> None:
        told.append(f"{context['message']}: {context.get('exception')}")

    loop.set_exception_handler(hear)
    yield
    loop.set_exception_handler(None)


async def go_away(ask: Callable[[], Any], steps: int) -> None:
    """Ask, and leave after so many steps of the loop."""
    asking = asyncio.create_task(ask())
    for _ in range(steps):
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def storm(server: Server) -> None:
    for steps in range(STEPS):
        database = Postgres(server.dsn)
        # The first opens a line, the second finds one open.
        await go_away(lambda: database.ask(_TWICE), steps)  # noqa: B023  asked at once
        assert await database.ask("SELECT 1") == [(1,)]
        await go_away(lambda: database.ask(_TWICE), steps)  # noqa: B023
        assert await database.ask("SELECT 2") == [(2,)]
        await database.close()
    gc.collect()
    await asyncio.sleep(0)


@pytest.mark.usefixtures("listening")
async def test_who_goes_away_leaves_nothing_in_the_log(postgres: Server, told: list[str]) -> None:
    await storm(postgres)
    assert told == []


@pytest.mark.usefixtures("listening")
async def test_without_the_guards_the_log_would_hear_of_it(
    postgres: Server, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Plain(Opening):
        async def __call__(self) -> Any:
            return await self._connect()

    monkeypatch.setattr(postgres_, "Opening", Plain)
    monkeypatch.setattr(postgres_, "Line", asyncpg.Connection)
    await storm(postgres)
    assert any("unexpected connection_lost" in one for one in told)


class Opened:
    """A connection that can only be closed."""

    def __init__(self) -> None:
        self.closed = False

    def terminate(self) -> None:
        self.closed = True


class Door:
    """Connections that open when they are let."""

    def __init__(self) -> None:
        self.opened: list[Opened] = []
        self.asked = 0
        self.let = asyncio.Event()

    async def connect(self) -> Opened:
        self.asked += 1
        await self.let.wait()
        self.opened.append(Opened())
        return self.opened[-1]


async def test_what_one_left_is_the_next_ones() -> None:
    door = Door()
    opening = Opening(door.connect)
    for _ in range(5):
        await go_away(opening, 3)
    assert door.asked == 1
    waiting = asyncio.create_task(opening())
    await asyncio.sleep(0)
    door.let.set()
    assert await waiting is door.opened[0]
    assert not door.opened[0].closed


async def test_what_nobody_wants_any_more_is_closed() -> None:
    door = Door()
    opening = Opening(door.connect)
    await go_away(opening, 3)
    door.let.set()
    await opening.close()
    assert [one.closed for one in door.opened] == [True]


async def test_a_failure_that_nobody_waits_for_is_heard(told: list[str], listening: None) -> None:
    async def refused() -> Any:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        raise ConnectionRefusedError

    opening = Opening(refused)
    await go_away(opening, 1)
    await opening.close()
    with pytest.raises(ConnectionRefusedError):
        await opening()
    gc.collect()
    assert told == []
