"""Who removes an agent takes everything from its name, until somebody makes such an agent again."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.gate.pair import Pair, opened, ran
from tests.store.places import SHARED
from tests.undo.shop import lost
from toolgate import Caller, Output, Toolgate
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.ledger.state import State
from toolgate.tenancy.capsule import EVERYTHING, Capsule
from toolgate.tenancy.world import World

pytestmark = pytest.mark.req("G1", "V3")
ME = Caller(tenant="acme", agent="billing")


@pytest.fixture(params=SHARED)
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Pair]:
    async with opened(request, tmp_path, request.param, monkeypatch) as found:
        await found.here.tenancy.set_agent("acme", "billing", "listed")
        yield found


def as_if_nothing_were_marked(world: World, tenant: str, agent: str) -> Capsule:
    return world.tenant(tenant).capsules.get(agent, EVERYTHING)


async def may(gate: Toolgate, tool: str = "effect") -> None:
    await gate.tenancy.activate("acme", "billing", tool)


async def approved(pair: Pair, *, removed: bool) -> Output:
    """A call that waits for a person, who agrees; by then its agent may be gone."""
    await may(pair.here, "grave")
    waiting = asyncio.create_task(pair.here.call("grave", caller=ME, wait_s=15))
    while not (asked := await pair.there.approvals.list("acme")):  # noqa: ASYNC110  the store is asked
        await asyncio.sleep(0.01)
    if removed:
        await pair.there.tenancy.remove_agent("acme", "billing")
    await pair.there.approvals.approve(asked[0].id, by="boss")
    return await waiting


async def recovered(pair: Pair, *, removed: bool) -> State:
    """A call whose process is gone, and what recovery makes of it."""
    await may(pair.here, "refund")
    done = await pair.here.call("refund", {"of": "p1"}, caller=ME)
    await lost(pair.here, done.call_id)
    ran.clear()
    if removed:
        await pair.there.tenancy.remove_agent("acme", "billing")
    await pair.here.recovery.sweep()
    found = await pair.here.ledger.find("acme", done.call_id)
    assert found is not None
    return found.state


@pytest.mark.parametrize("listed", [1, 0], ids=["has it", "has it not"])
async def test_its_name_may_nothing_any_more_on_any_node(pair: Pair, listed: int) -> None:
    if listed:
        await may(pair.here)
        assert (await pair.here.call("effect", caller=ME)).ok, "the positive control"
        ran.clear()
    else:
        with pytest.raises(ToolNotFound):
            await pair.here.call("effect", caller=ME)
    await pair.there.tenancy.remove_agent("acme", "billing")
    for gate in (pair.here, pair.there):
        with pytest.raises(ToolNotFound):
            await gate.call("effect", caller=ME)
        assert await gate.discover(ME) == ()
    assert ran == []


async def test_without_the_mark_it_might_do_everything(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(World, "capsule", as_if_nothing_were_marked)
    with pytest.raises(ToolNotFound):
        await pair.here.call("effect", caller=ME)
    await pair.there.tenancy.remove_agent("acme", "billing")
    assert (await pair.here.call("effect", caller=ME)).ok
    assert len(ran) == 1


async def test_it_can_hand_nothing_on(pair: Pair) -> None:
    await may(pair.here)
    handed = ME.delegate("helper")
    assert (await pair.here.call("effect", caller=handed)).ok, "the positive control"
    await pair.there.tenancy.remove_agent("acme", "billing")
    with pytest.raises(ToolNotFound):
        await pair.here.call("effect", caller=handed)
    assert len(ran) == 1


async def test_its_call_that_waits_for_a_person_does_not_run(pair: Pair) -> None:
    with pytest.raises(ToolNotFound):
        await approved(pair, removed=True)
    assert ran == []


async def test_a_call_that_waits_runs_while_its_agent_is_there(pair: Pair) -> None:
    """The positive control."""
    assert (await approved(pair, removed=False)).ok
    assert len(ran) == 1


async def test_without_the_mark_a_call_that_waits_would_run(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(World, "capsule", as_if_nothing_were_marked)
    assert (await approved(pair, removed=True)).ok
    assert len(ran) == 1


async def test_its_lost_call_is_not_run_again(pair: Pair) -> None:
    assert await recovered(pair, removed=True) is State.UNKNOWN
    assert ran == []


async def test_a_lost_call_is_run_again_while_its_agent_is_there(pair: Pair) -> None:
    """The positive control."""
    assert await recovered(pair, removed=False) is State.SUCCEEDED
    assert ran == ["refund"]


async def test_without_the_mark_a_lost_call_would_be_run_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(World, "capsule", as_if_nothing_were_marked)
    assert await recovered(pair, removed=True) is State.SUCCEEDED
    assert ran == ["refund"]


async def test_who_makes_it_anew_makes_a_fresh_one(pair: Pair) -> None:
    tenancy = pair.there.tenancy
    await tenancy.activate("acme", "billing", "effect", overrides={"requires_approval": True})
    await tenancy.set_newer_messages("acme", "billing", "absorb")
    await tenancy.remove_agent("acme", "billing")
    with pytest.raises(InvalidRequest, match="There is no agent"):
        await tenancy.remove_agent("acme", "billing")
    assert "billing" not in tenancy.world.tenant("acme").capsules, "where agents are listed from"
    await tenancy.set_agent("acme", "billing")
    assert tenancy.world.capsule("acme", "billing") == Capsule()
    assert (await pair.here.call("effect", caller=ME)).ok
    assert len(ran) == 1
    await tenancy.remove_agent("acme", "billing")
    await tenancy.activate("acme", "billing", "pay", enabled=False)
    assert (await pair.here.call("effect", caller=ME)).ok, "a new agent starts from everything"
    with pytest.raises(ToolNotFound):
        await pair.here.call("pay", caller=ME)


async def test_an_explanation_says_that_it_was_removed(pair: Pair) -> None:
    await pair.here.tenancy.remove_agent("acme", "billing")
    found = await pair.here.explain("effect", caller=ME)
    assert (found.allowed, found.deciding.phase, found.deciding.rule) == (
        False,
        "capsule",
        "removed",
    )
    assert found.deciding.remedy == "toolgate agents set billing --tenant acme"


async def test_others_do_not_notice(pair: Pair) -> None:
    await pair.there.tenancy.remove_agent("acme", "billing")
    for other in (
        Caller(tenant="acme", agent="shipping"),
        Caller(tenant="globex", agent="billing"),
    ):
        assert (await pair.here.call("effect", caller=other)).ok
    assert len(ran) == 2
