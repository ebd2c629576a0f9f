# pyright: reportPrivateUsage=false
"""A world that nobody could ask about for too long does not let a side effect through."""

import asyncio

import pytest

from toolgate import Caller, tool
from toolgate.errors import StoreUnavailable, ToolNotFound
from toolgate.tenancy import tenancy as module
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.house import in_memory

ME = Caller(tenant="acme", agent="billing")


@tool(effect="irreversible")
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


def hang(tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store takes questions and answers none."""

    async def never() -> int:
        return await asyncio.Future[int]()

    monkeypatch.setattr(tenancy._directory, "revision", never)
    monkeypatch.setattr(module, "_STALE_NS", 0)
    monkeypatch.setattr(module, "_FRESHEN_SECONDS", 0.01)


@pytest.mark.req("G1")
async def test_a_store_that_hangs_stops_side_effects_and_not_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_memory(pay, look) as gate:
        assert (await gate.call("pay", caller=ME)).data == "paid"
        hang(gate.tenancy, monkeypatch)
        with pytest.raises(StoreUnavailable, match="still allowed"):
            await gate.call("pay", caller=ME)
        assert (await gate.call("look", caller=ME)).data == "seen"


@pytest.mark.req("G1")
async def test_without_the_question_it_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control."""
    async with in_memory(pay) as gate:
        hang(gate.tenancy, monkeypatch)
        monkeypatch.setattr(gate.tenancy, "is_stale", lambda: False)
        assert (await gate.call("pay", caller=ME)).data == "paid"


@pytest.mark.req("G1")
async def test_a_revoke_elsewhere_is_seen_before_a_side_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_memory(pay) as gate:
        assert (await gate.call("pay", caller=ME)).ok
        await Tenancy(gate.tenancy._directory).set_tool("pay", enabled=False)
        assert (await gate.call("pay", caller=ME)).ok, "a fresh world is believed"
        monkeypatch.setattr(module, "_STALE_NS", 0)
        with pytest.raises(ToolNotFound):
            await gate.call("pay", caller=ME)
