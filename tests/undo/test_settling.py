"""An operator's word on calls whose end nobody saw."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.undo.shop import GROUP, ME, Shop, entry_of, lost, state_of
from toolgate import clock
from toolgate.errors import (
    CallNotFound,
    InProgress,
    InvalidRequest,
    StoreUnavailable,
    ToolNotFound,
)
from toolgate.ledger.entry import Entry
from toolgate.ledger.ledger import Which
from toolgate.ledger.state import MOVES, State
from toolgate.runtime import Runtime
from toolgate.testing.ledger import MemoryLedger


async def unknown(house: Runtime, shop: Shop, tool: str, **args: object) -> str:
    """A call that raised in the middle of its work."""
    shop.broken = {f"{tool}!"}
    output = await house.call(tool, args, caller=ME, turn=GROUP)
    shop.broken = set()
    assert await state_of(house, output.call_id) == "unknown"
    return output.call_id


async def told(house: Runtime, change: str) -> list[tuple[str, str, str]]:
    """Call, name and reason of what the audit says about this kind of change."""
    if isinstance(house.ledger, MemoryLedger):
        return [one[1:] for one in house.ledger.told if one[0] == change]
    records = await house.tenancy.audit(tenant="acme", limit=100)
    return [(one.details["call_id"], one.who, one.why) for one in records if one.change == change][
        ::-1
    ]


@pytest.mark.req("S3")
async def test_what_happened_is_answered_as_done_from_then_on(house: Runtime, shop: Shop) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    entry = await house.settling.settle("acme", one, happened=True, who="root", why="seen it")
    assert entry.state == "succeeded"
    replayed = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (replayed.ok, replayed.cached, replayed.data) == (True, True, None)
    assert shop.effects == []
    assert await told(house, "call.settled") == [(one, "root", "seen it")]


@pytest.mark.req("S3")
async def test_what_did_not_happen_gives_its_key_back(house: Runtime, shop: Shop) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    still = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert still.cached
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    assert await state_of(house, one) == "failed"
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.ok, retried.cached) == (True, False)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S3", "S4")
async def test_what_is_settled_as_done_can_be_taken_back_as_far_as_its_arguments_tell(
    house: Runtime, shop: Shop
) -> None:
    by_result = await unknown(house, shop, "pay", amount=1)
    await house.settling.settle("acme", by_result, happened=True, who="root", why="seen it")
    [item] = (await house.undo(caller=ME, call_id=by_result)).items
    assert (item.result, "payment is not in" in item.reason) == ("cannot", True)
    by_args = await unknown(house, shop, "rent", id="car")
    await house.settling.settle("acme", by_args, happened=True, who="root", why="seen it")
    assert (await house.undo(caller=ME, call_id=by_args)).ok
    assert shop.effects == [("refund", "car")]


@pytest.mark.req("S3")
async def test_run_again_is_a_new_call_for_each_reason_and_linked(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    first = await house.settling.again("acme", one, who="root", why="ann got nothing")
    second = await house.settling.again("acme", one, who="root", why="still nothing")
    assert first.ok
    assert second.ok
    assert (first.cached, second.cached) == (False, False)
    assert shop.effects == [("mail", "ann")] * 2
    assert len({one, first.call_id, second.call_id}) == 3
    linked = await house.ledger.search(Which(tenant="acme", of=one))
    assert {entry.call_id for entry in linked} == {first.call_id, second.call_id}
    entry = await entry_of(house, first.call_id)
    assert (entry.again_of, entry.agent) == (one, "billing")
    assert entry.key not in {"", (await entry_of(house, one)).key}, "a key of its own"
    assert await state_of(house, one) == "unknown"
    assert await told(house, "call.again") == [
        (one, "root", "ann got nothing"),
        (one, "root", "still nothing"),
    ]


@pytest.mark.req("S2", "S3")
async def test_what_was_run_again_answers_for_the_call_that_is_settled_as_not_happened(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    again = await house.settling.again("acme", one, who="root", why="ann got nothing")
    still = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (still.status, still.cached, still.call_id) == ("unknown", True, one)
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.ok, retried.cached, retried.data) == (True, True, "ann")
    assert retried.call_id == again.call_id
    assert shop.effects == [("mail", "ann")]
    other = await house.call("mail", {"to": "bob"}, caller=ME, turn=GROUP)
    assert (other.ok, other.cached) == (True, False)


@pytest.mark.req("S2", "S3")
async def test_a_call_run_again_whose_end_is_unknown_too_keeps_the_first_ones_key(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    shop.broken = {"mail!"}
    second = await house.settling.again("acme", one, who="root", why="ann got nothing")
    shop.broken = set()
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.status, retried.cached, retried.call_id) == ("unknown", True, second.call_id)
    third = await house.settling.again("acme", second.call_id, who="root", why="still nothing")
    await house.settling.settle("acme", second.call_id, happened=False, who="root", why="lost")
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.ok, retried.cached, retried.call_id) == (True, True, third.call_id)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_a_call_run_again_that_is_known_to_have_failed_keeps_nothing(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    shop.broken = {"mail"}
    second = await house.settling.again("acme", one, who="root", why="ann got nothing")
    shop.broken = set()
    assert await state_of(house, second.call_id) == "failed"
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.ok, retried.cached) == (True, False)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_a_call_that_is_run_again_just_now_is_waited_for_and_not_run_beside(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    second = await house.settling.again("acme", one, who="root", why="ann got nothing")
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    await lost(house, second.call_id, lease_ns=2**62)
    with pytest.raises(InProgress):
        await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_a_call_run_again_that_waits_for_a_person_is_not_asked_about_twice(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    second = await house.settling.again("acme", one, who="root", why="ann got nothing")
    await house.settling.settle("acme", one, happened=False, who="root", why="asked ann")
    await lost(house, second.call_id, state=State.WAITING, lease_ns=None)
    retried = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert (retried.status, retried.call_id) == ("pending_approval", second.call_id)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_who_asks_twice_for_the_same_reason_is_given_the_first_answer(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    first, second = [
        await house.settling.again("acme", one, who="root", why="ann got nothing") for _ in range(2)
    ]
    assert (first.ok, second.ok, second.cached) == (True, True, True)
    assert second.call_id == first.call_id
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_an_attempt_that_runs_is_not_made_beside(house: Runtime, shop: Shop) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    first = await house.settling.again("acme", one, who="root", why="ann got nothing")
    await lost(house, first.call_id, lease_ns=2**62)
    with pytest.raises(InProgress):
        await house.settling.again("acme", one, who="eva", why="nothing came")
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_nothing_is_run_again_that_is_not_on_record_under_a_name_before(
    house: Runtime, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await unknown(house, shop, "mail", to="ann")

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("The store is away. Nothing ran.")

    with monkeypatch.context() as patch:
        patch.setattr(house.ledger, "note", away)
        with pytest.raises(StoreUnavailable):
            await house.settling.again("acme", one, who="root", why="ann got nothing")
    assert shop.effects == []
    shop.broken = {"mail!"}
    await house.settling.again("acme", one, who="root", why="ann got nothing")
    assert await told(house, "call.again") == [(one, "root", "ann got nothing")]


@pytest.mark.req("S3")
async def test_run_again_is_decided_today(house: Runtime, shop: Shop) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    await house.tenancy.set_tenant_tool("acme", "mail", enabled=False)
    with pytest.raises(ToolNotFound):
        await house.settling.again("acme", one, who="root", why="please")
    assert shop.effects == []


@pytest.mark.req("S3")
async def test_only_what_is_unknown_is_settled_and_always_with_a_reason(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    with pytest.raises(InvalidRequest, match="Say why"):
        await house.settling.settle("acme", one, happened=True, who="root", why="  ")
    with pytest.raises(CallNotFound):
        await house.settling.settle("globex", one, happened=True, who="root", why="mine")
    await house.settling.settle("acme", one, happened=True, who="root", why="seen it")
    with pytest.raises(InvalidRequest, match="is succeeded"):
        await house.settling.settle("acme", one, happened=False, who="root", why="no")
    with pytest.raises(InvalidRequest, match="is succeeded"):
        await house.settling.again("acme", one, who="root", why="no")
    large = await unknown(house, shop, "mail", to="x" * 70_000)
    with pytest.raises(InvalidRequest, match="not on record"):
        await house.settling.again("acme", large, who="root", why="no")
    assert shop.effects == []


def test_the_concepts_page_tells_every_state_and_what_can_follow_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "concepts.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    told = {state: frozenset(re.findall(r"`([a-z_]+)`", after)) for state, after in rows}
    drawn = {str(state): frozenset(map(str, after)) for state, after in MOVES.items()}
    assert {state: told.get(state) for state in drawn} == drawn


@pytest.mark.req("S3", "S4")
async def test_what_takes_a_call_back_is_not_run_again_but_undone_again(
    house: Runtime, shop: Shop
) -> None:
    shop.broken = {"refund"}
    paid = await house.call("pay", {"amount": 1}, caller=ME, turn=GROUP)
    [item] = (await house.undo(caller=ME, call_id=paid.call_id)).items
    shop.broken = set()
    assert await state_of(house, item.undo_call_id) == "failed"
    with pytest.raises(InvalidRequest, match=f"undo '{paid.call_id}' again"):
        await house.settling.again("acme", item.undo_call_id, who="root", why="not refunded")
    assert shop.effects == [("pay", 1)]
    assert (await house.undo(caller=ME, call_id=paid.call_id)).ok
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S2", "S3")
async def test_of_operators_who_run_it_again_at_once_for_different_reasons_one_does(
    house: Runtime, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    search, looked = house.ledger.search, asyncio.Barrier(2)

    async def together(which: Which) -> Sequence[Entry]:
        """Both have looked before either has begun."""
        found = await search(which)
        await looked.wait()
        return found

    monkeypatch.setattr(house.ledger, "search", together)
    done = await asyncio.gather(
        house.settling.again("acme", one, who="root", why="ann got nothing"),
        house.settling.again("acme", one, who="eva", why="nothing came"),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["InProgress", "Output"]
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_an_attempt_whose_end_is_unknown_too_is_settled_before_there_is_another(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    shop.broken = {"mail!"}
    first = await house.settling.again("acme", one, who="root", why="ann got nothing")
    shop.broken = set()
    same = await house.settling.again("acme", one, who="root", why="ann got nothing")
    assert (same.status, same.cached, same.call_id) == ("unknown", True, first.call_id)
    with pytest.raises(InvalidRequest, match=f"Settle '{first.call_id}' first"):
        await house.settling.again("acme", one, who="eva", why="nothing came")
    assert shop.effects == []
    await house.settling.settle("acme", first.call_id, happened=False, who="root", why="lost")
    assert (await house.settling.again("acme", one, who="root", why="ann got nothing")).ok
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_an_unknown_attempt_that_the_far_side_knows_by_its_key_is_made_again(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "charge", amount=3)
    shop.broken = {"charge!"}
    await house.settling.again("acme", one, who="root", why="not charged")
    shop.broken = set()
    assert (await house.settling.again("acme", one, who="root", why="not charged")).ok
    assert len(set(shop.keys)) == 1


@pytest.mark.req("S3", "S6")
async def test_whoever_asks_goes_on_with_the_attempt_that_a_person_was_asked_about(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "mail", to="ann")
    await house.tenancy.activate("acme", "billing", "mail", overrides={"requires_approval": True})
    first = await house.settling.again("acme", one, who="root", why="ann got nothing")
    assert first.status == "pending_approval"
    assert first.error is not None
    await house.approvals.approve(first.error.details["approval_id"], by="boss", reason="fine")
    done = await house.settling.again("acme", one, who="eva", why="nothing came")
    assert done.ok
    assert shop.effects == [("mail", "ann")]
    same = await house.settling.again("acme", one, who="root", why="ann got nothing")
    assert (same.cached, same.call_id) == (True, done.call_id)
    assert shop.effects == [("mail", "ann")]


@pytest.mark.req("S2", "S3")
async def test_a_key_that_the_far_side_may_have_forgotten_is_not_used_again(
    house: Runtime, shop: Shop
) -> None:
    one = await unknown(house, shop, "charge", amount=3)
    entry = await entry_of(house, one)
    assert entry.expires_ns is not None
    assert entry.expires_ns > clock.unix_ns()
    # As if that time had passed.
    await lost(house, one, state=State.UNKNOWN, lease_ns=None, expires_ns=1)
    late = await house.call("charge", {"amount": 3}, caller=ME, turn=GROUP)
    assert (late.status, late.cached, late.call_id) == ("unknown", True, one)
    # The control: while it holds, the call is made again.
    await lost(house, one, state=State.UNKNOWN, lease_ns=None, expires_ns=entry.expires_ns)
    again = await house.call("charge", {"amount": 3}, caller=ME, turn=GROUP)
    assert (again.ok, again.cached, again.call_id) == (True, False, one)
    assert shop.effects == [("charge", 3)]
