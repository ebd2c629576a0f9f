"""Undo: of one's own calls only, as far as it is allowed and agreed to today."""

import asyncio

import pytest

from tests.undo.shop import FOREIGN, GROUP, ME, OTHER, Shop, paid, results, state_of
from tests.undo.test_settling import told
from toolgate import Caller
from toolgate.errors import CallNotFound, InvalidRequest, StoreUnavailable
from toolgate.executor.aftercare import recalled
from toolgate.ledger.entry import Entry
from toolgate.runtime import ADDED, Runtime
from toolgate.tenancy.layer import Layer
from toolgate.testing.ledger import MemoryLedger


@pytest.mark.req("S4")
async def test_exactly_one_thing_is_named(house: Runtime) -> None:
    for given in ({}, {"call_id": "a", "chain": "b"}, {"turn_group": ""}, {"chain": 7}):
        with pytest.raises(InvalidRequest):
            await house.undo(caller=ME, **given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidRequest):
        await house.undo_for("acme", who="root", why=" ", call_id="a")


@pytest.mark.req("S4")
@pytest.mark.parametrize("what", ["call", "group"])
async def test_a_store_that_hangs_is_told_as_such_and_nothing_is_taken_back(
    house: Runtime, shop: Shop, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    [one] = await paid(house, 1)

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    asked = {"call_id": one} if what == "call" else {"turn_group": GROUP.group}
    monkeypatch.setattr("toolgate.executor.aftercare.undo._STORE_SECONDS", 0.02)
    with monkeypatch.context() as hung:
        hung.setattr(house.ledger, "find" if what == "call" else "search", never)
        with pytest.raises(StoreUnavailable, match="nothing was taken back"):
            await house.undo(caller=ME, **asked)
    assert shop.effects == [("pay", 1)]
    monkeypatch.undo()
    assert (await house.undo(caller=ME, call_id=one)).ok, "once it answers"


@pytest.mark.req("S4", "V2")
@pytest.mark.parametrize(
    "who", [OTHER, FOREIGN, Caller(tenant="acme", agent="billing", user="ann")]
)
async def test_what_others_did_looks_as_if_it_were_not_there(
    house: Runtime, shop: Shop, who: Caller
) -> None:
    [one] = await paid(house, 1)
    with pytest.raises(CallNotFound) as theirs:
        await house.undo(caller=who, call_id=one)
    with pytest.raises(CallNotFound) as nothing:
        await house.undo(caller=who, call_id=one[:-1] + "x")
    assert str(theirs.value).replace(one, "") == str(nothing.value).replace(one[:-1] + "x", "")
    with pytest.raises(CallNotFound):
        await house.undo(caller=who, turn_group=GROUP.group)
    assert shop.effects == [("pay", 1)]
    # The same, asked by whoever it belongs to.
    assert (await house.undo(caller=ME, call_id=one)).ok


@pytest.mark.req("S4")
async def test_without_the_guard_another_agent_would_take_it_back(
    house: Runtime, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one] = await paid(house, 1)

    def anybody(_entry: Entry, _caller: Caller) -> bool:
        return True

    monkeypatch.setattr(recalled, "is_of", anybody)
    assert (await house.undo(caller=OTHER, call_id=one)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4")
async def test_undo_of_nothing_is_said_and_the_same_for_missing_and_foreign(
    house: Runtime, shop: Shop
) -> None:
    await house.call("pay", {"amount": 1}, caller=ME, turn=GROUP)
    told: list[str] = []
    for caller, group in ((OTHER, "t-17"), (FOREIGN, "t-17"), (ME, "t-18")):
        with pytest.raises(CallNotFound) as refused:
            await house.undo(caller=caller, turn_group=group)
        told.append(refused.value.message.replace("t-18", "t-17"))
    assert len(set(told)) == 1
    with pytest.raises(CallNotFound):
        await house.undo_for("acme", turn_group="t-18", who="root", why="typo")
    with pytest.raises(CallNotFound):
        await house.undo(caller=ME, chain="chain_x")
    assert shop.effects == [("pay", 1)]
    assert (await house.undo(caller=ME, turn_group="t-17")).ok


@pytest.mark.req("S4")
async def test_an_agent_that_handed_its_task_on_takes_back_what_was_done_with_it(
    house: Runtime, shop: Shop
) -> None:
    [one] = await paid(house, 1, caller=ME.delegate("helper"))
    assert (await house.undo(caller=ME, call_id=one)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4")
async def test_a_chain_that_was_answered_from_the_record_says_whose_its_effects_are(
    house: Runtime, shop: Shop
) -> None:
    steps = [{"tool": "pay", "args": {"amount": 1}}]
    first = await house.chain(steps, caller=ME, turn=GROUP)
    second = await house.chain(steps, caller=ME, turn=GROUP)
    [ran], [replayed] = first.steps, second.steps
    assert (replayed.output.cached, replayed.output.call_id) == (True, ran.output.call_id)
    with pytest.raises(CallNotFound, match=r"cached.*call_id"):
        await house.undo(caller=ME, chain=second.chain_id)
    assert shop.effects == [("pay", 1)]
    assert (await house.undo(caller=ME, call_id=replayed.output.call_id)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4")
async def test_todays_permission_decides(house: Runtime, shop: Shop) -> None:
    [one] = await paid(house, 1)
    await house.tenancy.set_tenant_tool("acme", "refund", enabled=False)
    report = await house.undo(caller=ME, call_id=one)
    assert results(report) == [("pay", "refused")]
    assert await state_of(house, one) == "succeeded"
    assert shop.effects == [("pay", 1)]
    # An operator has no other permission than the agent for whom they do it.
    theirs = await house.undo_for("acme", who="root", why="complaint", call_id=one)
    assert results(theirs) == [("pay", "refused")]
    await house.tenancy.set_tenant_tool("acme", "refund", enabled=None)
    assert (await house.undo_for("acme", who="root", why="complaint", call_id=one)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4", "O2")
async def test_an_operators_undo_that_is_refused_is_on_record(house: Runtime, shop: Shop) -> None:
    """Also where the compensation is gone: then no decision tells of it."""
    [one] = await paid(house, 1)
    every = house.catalog.part(ADDED)
    house.catalog.put(ADDED, [spec for spec in every if spec.name != "refund"])
    assert results(await house.undo(caller=ME, call_id=one)) == [("pay", "refused")]
    theirs = await house.undo_for("acme", who="root", why="complaint", call_id=one)
    assert results(theirs) == [("pay", "refused")]
    assert await told(house, "call.undo_refused") == [(one, "root", "complaint")]
    if not isinstance(house.ledger, MemoryLedger):
        assert (await house.trail.verify(tenant="acme")).holds
    house.catalog.put(ADDED, every)
    assert (await house.undo_for("acme", who="root", why="complaint", call_id=one)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4", "G5")
async def test_an_operator_takes_back_with_the_roles_that_the_caller_had(
    house: Runtime, shop: Shop
) -> None:
    clerk = Caller(tenant="acme", agent="billing", roles=("clerk",))
    [one] = await paid(house, 1, caller=clerk)
    await house.tenancy.set_layer("kept", Layer(deny=("refund",)), role="clerk", tenant="acme")
    refused = await house.undo_for("acme", who="root", why="complaint", call_id=one)
    assert results(refused) == [("pay", "refused")]
    assert shop.effects == [("pay", 1)]
    await house.tenancy.set_layer("kept", None, role="clerk", tenant="acme")
    assert (await house.undo_for("acme", who="root", why="complaint", call_id=one)).ok


@pytest.mark.req("S4", "S6")
async def test_undo_waits_for_its_approval_and_goes_on_once_that_is_given(
    house: Runtime, shop: Shop
) -> None:
    [one] = await paid(house, 1)
    await house.tenancy.activate("acme", "billing", "refund", overrides={"requires_approval": True})
    report = await house.undo(caller=ME, call_id=one)
    [item] = report.items
    assert (item.result, item.stands, report.ok) == ("pending_approval", True, False)
    assert shop.effects == [("pay", 1)]
    # To ask again is not to agree.
    assert results(await house.undo(caller=ME, call_id=one)) == [("pay", "pending_approval")]
    assert shop.effects == [("pay", 1)]
    await house.approvals.approve(item.approval_id, by="ops", reason="they asked for it")
    assert results(await house.undo(caller=ME, call_id=one)) == [("pay", "undone")]
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4", "S6")
async def test_an_approval_of_an_undo_is_of_no_use_to_a_call_that_looks_the_same(
    house: Runtime, shop: Shop
) -> None:
    [one] = await paid(house, 1)
    await house.tenancy.activate("acme", "billing", "refund", overrides={"requires_approval": True})
    asked = {"payment": "p1"}
    direct = await house.call("refund", asked, caller=ME)
    assert direct.error is not None
    [item] = (await house.undo_for("acme", who="boss", why="wrong", call_id=one)).items
    assert item.result == "pending_approval"
    assert item.approval_id != direct.error.details["approval_id"]
    await house.approvals.approve(item.approval_id, by="boss", reason="for the undo")
    assert (await house.call("refund", asked, caller=ME)).status == "pending_approval"
    assert shop.effects == [("pay", 1)]
    assert (await house.undo_for("acme", who="boss", why="wrong", call_id=one)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]
