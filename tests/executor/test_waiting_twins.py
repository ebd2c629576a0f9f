"""Who waits for a call that runs already: so many at a time, and no more."""

import asyncio

import pytest

from toolgate import Caller, tool
from toolgate.errors import InProgress
from toolgate.testing.house import in_memory

ME = Caller(tenant="acme", agent="billing")


@pytest.mark.req("S2")
@pytest.mark.parametrize("most", [1, 2])
async def test_who_comes_when_too_many_wait_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("toolgate.executor.recording.twins._MOST_WAITING", most)
    begun, release = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool(effect="irreversible")
    async def pay() -> str:
        begun.set()
        await release.wait()
        ran.append("pay")
        return "paid"

    async with in_memory(pay) as gate:

        def call() -> "asyncio.Task[object]":
            paying = gate.call("pay", caller=ME, idempotency_key="k", wait_s=30)
            return asyncio.create_task(paying)

        first = call()
        await begun.wait()
        second, third = call(), call()
        if most == 1:
            with pytest.raises(InProgress):
                await third
            release.set()
        else:
            release.set()
            await third
        await asyncio.gather(first, second)
    assert ran == ["pay"]
