# pyright: reportPrivateUsage=false
"""A store that does not answer lets no side effect through: it may have been revoked meanwhile."""

import asyncio

import pytest

from toolgate import Caller, tool
from toolgate.errors import StoreUnavailable, ToolNotFound
from toolgate.gate.asking import Rules
from toolgate.tenancy import present
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
    monkeypatch.setattr(present, "FRESHEN_SECONDS", 0.01)


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


async def asleep(_tenancy: Tenancy) -> None:
    """The guard, taken out."""


@pytest.mark.req("G1")
async def test_without_the_question_it_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control."""
    async with in_memory(pay) as gate:
        assert (await gate.call("pay", caller=ME)).ok
        await Tenancy(gate.tenancy._directory).set_tool("pay", enabled=False)
        monkeypatch.setattr(Tenancy, "freshen", asleep)
        assert (await gate.call("pay", caller=ME)).data == "paid"


@pytest.mark.req("G1", "G8")
async def test_a_revoke_elsewhere_is_seen_before_a_side_effect() -> None:
    async with in_memory(pay, look) as gate:
        for name in ("pay", "look"):
            assert (await gate.call(name, caller=ME)).ok
        elsewhere = Tenancy(gate.tenancy._directory)
        for name in ("pay", "look"):
            await elsewhere.set_tool(name, enabled=False)
        assert (await gate.call("look", caller=ME)).ok, "what changes nothing may wait for the word"
        with pytest.raises(ToolNotFound):
            await gate.call("pay", caller=ME)
        await gate.tenancy.refresh()
        with pytest.raises(ToolNotFound):
            await gate.call("look", caller=ME)


@pytest.mark.req("G8")
async def test_flags_that_are_too_old_are_looked_up_before_anything_new_is_decided() -> None:
    async with in_memory(look, rules=Rules(enabled_ttl_ns=0)) as gate:
        await Tenancy(gate.tenancy._directory).set_tool("look", enabled=False)
        with pytest.raises(ToolNotFound):
            await gate.call("look", caller=ME)
        assert await gate.discover(ME) == ()
    async with in_memory(look) as gate:
        await Tenancy(gate.tenancy._directory).set_tool("look", enabled=False)
        assert (await gate.call("look", caller=ME)).ok, "the guard-off control"


@pytest.mark.req("G8")
async def test_a_decision_is_not_believed_longer_than_the_setting_says() -> None:
    async with in_memory(look, rules=Rules(permission_ttl_ns=0)) as gate:
        await gate.call("look", caller=ME)
        assert gate.gate.known(ME, "look") is None
    async with in_memory(look) as gate:
        await gate.call("look", caller=ME)
        assert gate.gate.known(ME, "look") is not None
