"""A remote engine behind a breaker: spared when it fails, and a cancelled call says nothing."""

import asyncio

import pytest

from toolgate.breaker import Limits
from toolgate.engines.guard import Guarded
from toolgate.errors import PolicyUnavailable, RelationsUnavailable

LIMITS = Limits(window=4, at_least=2, wait=5.0, probes=1, patience=10.0)


class Time:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


async def fails() -> None:
    raise RelationsUnavailable("away")


async def works() -> int:
    return 7


@pytest.mark.req("G7")
async def test_it_refuses_at_once_when_open_and_closes_by_itself() -> None:
    time = Time()
    ask = Guarded(RelationsUnavailable, "relations server", limits=LIMITS, now_ns=time)
    assert await ask(works) == 7
    with pytest.raises(RelationsUnavailable, match="away"):
        await ask(fails)
    assert ask.open
    with pytest.raises(RelationsUnavailable, match="left alone"):
        await ask(works)
    time.now_ns = 5_000_000_000
    assert await ask(works) == 7
    assert not ask.open


@pytest.mark.req("G7")
async def test_a_call_that_is_cancelled_or_fails_otherwise_gives_its_permit_back() -> None:
    time = Time()
    ask = Guarded(PolicyUnavailable, "policy server", limits=LIMITS, now_ns=time)

    async def away() -> None:
        raise PolicyUnavailable("away")

    for _ in range(2):
        with pytest.raises(PolicyUnavailable):
            await ask(away)
    time.now_ns = 5_000_000_000
    for _ in range(5):
        waiting = asyncio.create_task(ask(asyncio.Event().wait))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(ZeroDivisionError):
            await ask(_mistaken)
    assert await ask(works) == 7


async def _mistaken() -> None:
    raise ZeroDivisionError
