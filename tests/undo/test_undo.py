"""Undo: in reverse order, once each, and gone on with; what cannot be undone with its reason."""

import asyncio

import pytest

from tests.house import until
from tests.undo.shop import GROUP, ME, Shop, entry_of, lost, paid, results, state_of, without_key
from toolgate import clock
from toolgate.executor.aftercare.report import Report
from toolgate.ledger.state import State
from toolgate.runtime import Runtime


@pytest.mark.req("S4")
async def test_a_turn_group_is_taken_back_in_reverse_order_and_once(
    house: Runtime, shop: Shop
) -> None:
    ids = await paid(house, 1, 2, 3)
    report = await house.undo(caller=ME, turn_group=GROUP.group, reason="a mistake")
    assert report.ok
    assert [item.call_id for item in report.items] == ids[::-1]
    assert {item.result for item in report.items} == {"undone"}
    assert shop.effects[3:] == [("refund", "p3"), ("refund", "p2"), ("refund", "p1")]
    again = await house.undo(caller=ME, turn_group=GROUP.group)
    assert again.ok
    assert {item.result for item in again.items} == {"already_undone"}
    assert [item.undo_call_id for item in again.items] == [
        item.undo_call_id for item in report.items
    ]
    assert len(shop.effects) == 6
    for item in report.items:
        assert (await entry_of(house, item.undo_call_id)).undo_of == item.call_id
        assert await state_of(house, item.call_id) == "compensated"


@pytest.mark.req("S4")
async def test_one_call_is_taken_back_and_the_others_stay(house: Runtime, shop: Shop) -> None:
    one, two = await paid(house, 1, 2)
    report = await house.undo(caller=ME, call_id=one)
    assert results(report) == [("pay", "undone")]
    assert shop.effects[2:] == [("refund", "p1")]
    assert await state_of(house, two) == "succeeded"
    # Its answer would be untrue from now on.
    repeated = await house.call("pay", {"amount": 1}, caller=ME, turn=GROUP)
    assert (repeated.status, repeated.cached) == ("skipped", True)
    assert shop.effects[2:] == [("refund", "p1")]


@pytest.mark.req("S4")
async def test_what_cannot_be_taken_back_is_listed_with_the_reason(
    house: Runtime, shop: Shop
) -> None:
    for tool, args in (
        ("pay", {"amount": 1}),
        ("mail", {"to": "ann"}),
        ("label", {"text": "x"}),
        ("lend", {"id": "b"}),
        ("look", {"text": "only"}),
    ):
        assert (await house.call(tool, args, caller=ME, turn=GROUP)).ok
    shop.broken = {"pay"}
    assert not (await house.call("pay", {"amount": 2}, caller=ME, turn=GROUP)).ok
    shop.broken = {"mail!"}
    assert (await house.call("mail", {"to": "bob"}, caller=ME, turn=GROUP)).status == "unknown"
    report = await house.undo(caller=ME, turn_group=GROUP.group)
    told = [(item.tool, item.result, item.reason, item.stands) for item in report.items]
    assert told == [
        (
            "mail",
            "cannot",
            "Nobody knows whether it happened. Settle it first, or have it settled.",
            True,
        ),
        ("pay", "cannot", "It never happened: there is nothing to take back.", False),
        (
            "lend",
            "cannot",
            "It cannot be planned: lacks is not in the call's arguments or result.",
            True,
        ),
        ("label", "cannot", "'label' has no compensation.", True),
        ("mail", "cannot", "'mail' is irreversible.", True),
        ("pay", "undone", "", False),
    ]
    assert not report.ok


@pytest.mark.req("S4")
async def test_a_failure_stops_none_of_the_others_and_can_be_tried_again(
    house: Runtime, shop: Shop
) -> None:
    await paid(house, 1, 2, 3)
    shop.broken = {"refund"}
    report = await house.undo(caller=ME, turn_group=GROUP.group)
    assert {item.result for item in report.items} == {"failed"}
    assert "out of order" in report.items[0].reason
    for item in report.items:
        entry = await entry_of(house, item.call_id)
        assert (entry.state, entry.error_code) == ("compensation_failed", "compensation_failed")
    assert len(shop.effects) == 3
    # What could not be taken back is still there: that is what a repeated call is told.
    replayed = await house.call("pay", {"amount": 3}, caller=ME, turn=GROUP)
    assert (replayed.ok, replayed.cached, replayed.data) == (True, True, {"payment": "p3"})
    shop.broken = set()
    again = await house.undo(caller=ME, turn_group=GROUP.group)
    assert again.ok
    assert shop.effects[3:] == [("refund", "p3"), ("refund", "p2"), ("refund", "p1")]


@pytest.mark.req("S4")
async def test_of_two_at_once_one_takes_back(house: Runtime, shop: Shop) -> None:
    await paid(house, 1, 2)
    reports = await asyncio.gather(
        *(house.undo(caller=ME, turn_group=GROUP.group) for _ in range(6))
    )
    assert shop.effects.count(("refund", "p1")) == 1
    assert shop.effects.count(("refund", "p2")) == 1
    told = {item.result for report in reports for item in report.items}
    assert told <= {"undone", "in_progress", "already_undone"}
    assert sum(item.result == "undone" for report in reports for item in report.items) == 2


@pytest.mark.req("S4")
async def test_after_its_time_it_is_too_late(house: Runtime, shop: Shop) -> None:
    output = await house.call("rent", {"id": "car"}, caller=ME, turn=GROUP)
    entry = await entry_of(house, output.call_id)
    until_ns = entry.undo_until_ns or 0
    assert abs(until_ns - entry.ended_ns - 1_000_000) < 100_000
    await until(lambda: clock.unix_ns() > until_ns)
    report = await house.undo(caller=ME, turn_group=GROUP.group)
    assert results(report) == [("rent", "expired")]
    assert await state_of(house, output.call_id) == "succeeded"
    assert shop.effects == [("rent", "car")]


@pytest.mark.req("S4")
@pytest.mark.parametrize(("found", "result"), [(True, "undone"), (False, "cannot")])
async def test_an_unknown_step_is_asked_about_first(
    house: Runtime, shop: Shop, *, found: bool, result: str
) -> None:
    shop.broken = {"wire!"}
    output = await house.call("wire", {"amount": 7}, caller=ME, turn=GROUP)
    assert await state_of(house, output.call_id) == "unknown"
    shop.found = found
    report = await house.undo(caller=ME, turn_group=GROUP.group)
    assert results(report) == [("wire", result)]
    assert report.ok
    assert shop.asked == shop.keys, "asked by the key that the far side got"
    assert shop.effects == ([("refund", "w7")] if found else [])
    assert await state_of(house, output.call_id) == ("compensated" if found else "failed")


@pytest.mark.req("S4")
async def test_an_unknown_step_that_nobody_can_tell_about_stays(house: Runtime, shop: Shop) -> None:
    shop.broken = {"wire!", "find"}
    output = await house.call("wire", {"amount": 7}, caller=ME, turn=GROUP)
    report = await house.undo(caller=ME, turn_group=GROUP.group)
    assert results(report) == [("wire", "cannot")]
    assert not report.ok
    assert shop.effects == []
    assert await state_of(house, output.call_id) == "unknown"


@pytest.mark.req("S4", "S3")
async def test_an_undo_whose_process_is_gone_is_gone_on_with_in_order_and_nothing_twice(
    house: Runtime, shop: Shop
) -> None:
    ids = await paid(house, 1, 2, 3)
    # It had marked all three and taken the last one back.
    assert (await house.undo(caller=ME, call_id=ids[2])).ok
    for one in ids:
        entry = await entry_of(house, one)
        await lost(
            house,
            one,
            state=State.COMPENSATING,
            plan=entry.plan,
            result=entry.result,
            fence=entry.fence + 1,
        )
    for _ in range(3):
        await house.recovery.sweep()
    assert shop.effects[3:] == [("refund", "p3"), ("refund", "p2"), ("refund", "p1")]
    assert [await state_of(house, one) for one in ids] == ["compensated"] * 3


@pytest.mark.req("S4", "S2")
async def test_an_undo_whose_caller_goes_away_is_gone_on_with_and_done_once(
    house: Runtime, shop: Shop
) -> None:
    waiting: list[asyncio.Task[Report]] = []

    async def restock(item: str) -> str:
        shop.effects.append(("restock", item))
        asyncio.get_running_loop().call_soon(waiting[0].cancel)
        return item

    async def order(item: str) -> str:
        return item

    house.add(restock, effect="irreversible")
    how = {"tool": "restock", "args": {"item": "$args.item"}}
    house.add(order, effect="compensatable", compensation=how)
    one = (await house.call("order", {"item": "book"}, caller=ME, turn=GROUP)).call_id
    waiting.append(asyncio.create_task(house.undo(caller=ME, call_id=one)))
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    # Nobody has heard of how it ended, so nobody says that it failed.
    entry = await entry_of(house, one)
    assert entry.state == "compensating"
    await until(lambda: shop.effects == [("restock", "book")])
    await lost(house, one, state=entry.state, plan=entry.plan, result=entry.result)
    await house.recovery.sweep()
    assert await state_of(house, one) == "compensated"
    assert results(await house.undo(caller=ME, call_id=one)) == [("order", "already_undone")]
    assert shop.effects == [("restock", "book")]


@pytest.mark.req("S4", "S2")
async def test_what_took_it_back_is_found_also_where_its_key_is_gone(
    house: Runtime, shop: Shop
) -> None:
    [one] = await paid(house, 1)
    [done] = (await house.undo(caller=ME, call_id=one)).items
    entry = await entry_of(house, one)
    await lost(house, one, state=State.COMPENSATION_FAILED, plan=entry.plan, result=entry.result)
    await without_key(house, done.undo_call_id)
    [again] = (await house.undo(caller=ME, call_id=one)).items
    assert (again.result, again.undo_call_id) == ("undone", done.undo_call_id)
    assert shop.effects == [("pay", 1), ("refund", "p1")]


@pytest.mark.req("S4", "X7")
async def test_a_chain_whose_fourth_step_fails_is_taken_back_from_the_third_to_the_first(
    house: Runtime, shop: Shop
) -> None:
    steps = [{"tool": "pay", "args": {"amount": amount}} for amount in (1, 2, 3)]
    steps += [{"tool": "mail", "args": {"to": "ann"}}, {"tool": "pay", "args": {"amount": 5}}]
    shop.broken = {"mail"}
    done = await house.chain(steps, caller=ME, turn=GROUP, mode="sequential", undo_on_failure=True)
    assert shop.effects[3:] == [("refund", "p3"), ("refund", "p2"), ("refund", "p1")]
    assert [item.result for item in done.undone.items] == ["cannot", "undone", "undone", "undone"]
    assert done.undone.ok


@pytest.mark.req("S4")
async def test_a_chain_that_failed_before_it_did_anything_has_nothing_to_take_back(
    house: Runtime, shop: Shop
) -> None:
    shop.broken = {"mail"}
    steps = [{"tool": "mail", "args": {"to": "ann"}}]
    chain = await house.chain(steps, caller=ME, turn=GROUP, undo_on_failure=True)
    assert not chain.ok
    assert chain.to_machine()["undone"]["ok"] is True
