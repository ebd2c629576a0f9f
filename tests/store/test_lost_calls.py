"""A call whose owner is gone is taken once, as its tool allows, over every store."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.store.entries import entry
from tests.store.once import GONE, Once, keyed, lost_in, over, state_of
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State

pytestmark = pytest.mark.req("S2", "S3")
SAFE = [Recovery.AGAIN, Recovery.KEYED]


@pytest.mark.parametrize("recovery", SAFE)
async def test_who_comes_after_a_lost_owner_runs_what_may_run_again(
    once: Once, recovery: Recovery
) -> None:
    lost = once.journal(**GONE)
    first = keyed(recovery=recovery)
    begun = await lost.begin(first)
    again = await once.journal().begin(keyed(recovery=recovery))
    assert (again.action, again.entry.call_id, again.entry.fence) == (
        Action.AGAIN,
        first.call_id,
        2,
    )
    assert again.entry.state is State.STARTED
    assert not (await lost.end(over(begun.entry, result=b'"late"'))).accepted
    assert (await once.journal().end(over(again.entry, result=b'"mine"'))).accepted
    found = await lost.find("acme", first.call_id)
    assert found is not None
    assert found.result == b'"mine"'


async def test_who_comes_after_a_lost_owner_leaves_what_a_probe_can_tell(once: Once) -> None:
    first = keyed(recovery=Recovery.PROBED)
    await once.journal(**GONE).begin(first)
    assert (await once.journal().begin(keyed())).action is Action.WAIT
    taken = await once.ledger(once.journal()).take((await lost_in(once))[0])
    assert (taken.action, taken.entry.state, taken.entry.fence) == (
        Action.PROBE,
        State.CLAIMED,
        2,
    )


async def test_who_comes_after_a_lost_owner_parks_what_only_a_person_can_tell(once: Once) -> None:
    lost = once.journal(**GONE)
    first = keyed(recovery=Recovery.PARK)
    begun = await lost.begin(first)
    parked = await once.journal().begin(keyed())
    assert (parked.action, parked.entry.state) == (Action.PARK, State.UNKNOWN)
    assert (await once.journal().begin(keyed())).action is Action.REPLAY
    assert not (await lost.end(over(begun.entry))).accepted
    assert await state_of(once, first) is State.UNKNOWN
    assert await once.changes() in (None, ["call.ended unknown"])


async def test_nobody_holds_what_was_parked(once: Once) -> None:
    for begin in (True, False):
        call = keyed(key=f"k{begin}", recovery=Recovery.PARK)
        lost = (await once.journal(**GONE).begin(call)).entry
        if begin:
            parked = await once.journal().begin(keyed(key=f"k{begin}"))
        else:
            parked = await once.ledger(once.journal()).take(lost)
        assert parked.action is Action.PARK
        found = await once.journal().find("acme", call.call_id)
        assert found is not None
        assert (found.state, found.lease_ns) == (State.UNKNOWN, None)
        assert found.ended_ns > 0


@pytest.mark.parametrize("recovery", SAFE)
async def test_without_a_persons_word_a_lost_call_is_left_to_those_who_look_after_it(
    once: Once, recovery: Recovery
) -> None:
    await once.journal(**GONE).begin(keyed(recovery=recovery))
    refused = await once.journal().begin(keyed(recovery=recovery), may_start=False)
    assert (refused.action, refused.entry.fence) == (Action.WAIT, 1)
    agreed = keyed(key="k2", recovery=recovery, approval="apr_1", lease_ns=0, fence=1, tried=True)
    await once.put(agreed)
    again = await once.journal().begin(keyed(key="k2", recovery=recovery), may_start=False)
    assert (again.action, again.entry.call_id) == (Action.AGAIN, agreed.call_id)


@pytest.mark.parametrize("recovery", SAFE)
async def test_of_16_who_find_a_lost_call_one_runs_it(once: Once, recovery: Recovery) -> None:
    await once.journal(**GONE).begin(keyed(recovery=recovery))
    journals = [once.journal() for _ in range(16)]
    begun = await asyncio.gather(*(journal.begin(keyed()) for journal in journals))
    actions = [one.action for one in begun]
    assert (actions.count(Action.AGAIN), actions.count(Action.WAIT)) == (1, 15)


@pytest.mark.parametrize(
    ("recovery", "action", "state"),
    [
        (Recovery.AGAIN, Action.AGAIN, State.CLAIMED),
        (Recovery.KEYED, Action.AGAIN, State.CLAIMED),
        (Recovery.PROBED, Action.PROBE, State.CLAIMED),
        (Recovery.PARK, Action.PARK, State.UNKNOWN),
    ],
)
async def test_a_lost_call_is_taken_once_as_its_tool_allows(
    once: Once, recovery: Recovery, action: Action, state: State
) -> None:
    call = entry(recovery=recovery)
    begun = await once.journal(**GONE).begin(call)
    found = await lost_in(once)
    assert [one.call_id for one in found] == [call.call_id]
    ours, theirs = once.ledger(once.journal()), once.ledger(once.journal())
    taken = await ours.take(found[0])
    assert (taken.action, taken.entry.state, taken.entry.fence) == (action, state, 2)
    assert (await theirs.take(found[0])).action is Action.REFUSE
    assert (await theirs.take(taken.entry)).action is Action.REFUSE
    assert await lost_in(once) == []
    assert not (await once.journal().end(over(begun.entry))).accepted
    if state is State.CLAIMED:
        assert await ours.start(taken.entry)
        assert (await once.journal().end(over(taken.entry))).accepted


async def test_a_call_whose_owner_may_be_there_is_not_lost(once: Once) -> None:
    await once.journal(lease=60.0).begin(keyed(recovery=Recovery.AGAIN))
    missing = keyed(key="k2", recovery=Recovery.AGAIN, fence=1, tried=True, owner="somebody")
    await once.put(missing)
    assert await lost_in(once) == []
    assert (await once.ledger(once.journal()).take(missing)).action is Action.REFUSE
    assert (await once.journal().begin(keyed(key="k2"))).action is Action.WAIT
    zero = keyed(key="k3", recovery=Recovery.AGAIN, fence=1, tried=True, lease_ns=0)
    await once.put(zero)
    assert [one.call_id for one in await lost_in(once)] == [zero.call_id]


async def test_lost_calls_come_in_the_order_that_their_leases_ended(once: Once) -> None:
    calls = [entry(lease_ns=ends, fence=1, tried=True) for ends in (30, 10, 20)]
    for call in calls:
        await once.put(call)
    ledger = once.ledger(once.journal())
    order = [calls[1].call_id, calls[2].call_id, calls[0].call_id]
    for limit in (0, 1, 2, 5):
        assert [one.call_id for one in await ledger.lost(limit)] == order[:limit]


async def test_of_leases_that_ended_together_the_latest_call_comes_first(once: Once) -> None:
    calls = [entry(lease_ns=10, fence=1, tried=True, started_ns=at) for at in (1, 3, 2)]
    for call in calls:
        await once.put(call)
    found = await once.ledger(once.journal()).lost(5)
    assert [one.started_ns for one in found] == [3, 2, 1]


async def test_tenants_with_lost_calls_come_by_turns(once: Once) -> None:
    many = [entry(lease_ns=1, fence=1, tried=True, started_ns=at) for at in range(9, 4, -1)]
    few = [entry(tenant=name, lease_ns=2, fence=1, tried=True) for name in ("globex", "umbrella")]
    for call in (*many, *few):
        await once.put(call)
    ledger = once.ledger(once.journal())
    found = [one.tenant for one in await ledger.lost(4)]
    assert (found[0], sorted(found[1:3]), found[3]) == ("acme", ["globex", "umbrella"], "acme")
    left = await ledger.lost(9, busy=["acme"], but=[few[0].call_id])
    assert [one.call_id for one in left] == [few[1].call_id]


def _mark(at: int, **fields: object) -> Entry:
    given: dict[str, object] = {
        "state": State.COMPENSATING,
        "scope": "clerk/3/ann/turn",
        "turn_group": "g",
        "lease_ns": 1,
        "fence": 2,
        "tried": True,
        "started_ns": at,
    }
    return entry(**(given | fields))


async def test_of_what_is_to_be_taken_back_together_only_the_latest_is_lost(once: Once) -> None:
    group = [_mark(at) for at in (1, 2)] + [_mark(3, scope="clerk/3/ann/key", key="k")]
    others = [
        _mark(1, scope="clerk/3/bob/turn"),
        _mark(1, tenant="globex"),
        _mark(1, turn_group="h"),
        *(_mark(1, turn_group="") for _ in range(2)),
        _mark(2, turn_group="", chain="c"),
    ]
    for call in (*group, *others, _mark(1, turn_group="", chain="c")):
        await once.put(call)
    ledger = once.ledger(once.journal())
    found = {one.call_id for one in await ledger.lost(50)}
    assert found == {group[2].call_id, *(one.call_id for one in others)}
    # Somebody is at the latest: the others wait for it all the same.
    assert (await ledger.take(group[2])).action is Action.COMPENSATE
    assert {one.call_id for one in await ledger.lost(50)} == {one.call_id for one in others}


async def test_unknown_calls_are_gone_through_page_by_page(once: Once) -> None:
    calls = [
        entry(state=State.UNKNOWN, recovery=Recovery.PROBED, fence=1, tried=True, ended_ns=at)
        for at in (5, 5, 3, 2, 1)
    ]
    for call in (*calls, entry(state=State.UNKNOWN, fence=1, ended_ns=9)):
        await once.put(call)
    ledger = once.ledger(once.journal())
    first = await ledger.unsure(2)
    second = await ledger.unsure(2, behind=first[-1])
    third = await ledger.unsure(2, behind=second[-1])
    assert [one.ended_ns for one in (*first, *second, *third)] == [5, 5, 3, 2, 1]
    assert len({one.call_id for one in (*first, *second, *third)}) == 5
    assert await ledger.unsure(0) == []


async def test_a_renewed_lease_is_live_and_only_its_owner_renews_it(once: Once) -> None:
    journal = once.journal(lease=60.0)
    running = (await journal.begin(entry(recovery=Recovery.AGAIN))).entry
    done = (await journal.begin(entry())).entry
    await journal.end(over(done))
    assert await once.ledger(once.journal(lease=90.0)).renew() == 0
    assert await once.ledger(journal).renew() == 1
    found = await journal.find("acme", running.call_id)
    assert found is not None
    assert found.lease_ns is not None
    assert running.lease_ns is not None
    assert found.lease_ns >= running.lease_ns
    assert replace(found, lease_ns=0) == replace(running, lease_ns=0, args_hash=found.args_hash)


async def test_what_this_process_does_not_run_any_more_is_not_kept_alive(once: Once) -> None:
    """As when the answer to a claim was lost: nobody will ever end it."""
    begun = (await once.journal(**GONE).begin(entry(recovery=Recovery.AGAIN))).entry
    journal = once.journal()
    ledger = once.ledger(journal)
    assert (await ledger.take(begun)).action is Action.AGAIN
    assert await ledger.renew() == 1
    other = once.journal()
    await other.end(over(begun, fence=7))
    assert await ledger.renew() == 1
    await journal.end(over(begun, fence=7))
    assert await ledger.renew() == 0


@pytest.mark.parametrize("recovery", Recovery)
async def test_who_stood_still_past_its_lease_does_not_take_what_it_runs_for_lost(
    once: Once, recovery: Recovery
) -> None:
    """Nobody else came: it is late with its word, and goes on."""
    journal = once.journal(**GONE)
    begun = (await journal.begin(keyed(recovery=recovery))).entry
    ledger = once.ledger(journal)
    assert (await ledger.take(begun)).action is Action.REFUSE
    assert (await journal.begin(keyed(recovery=recovery))).action is Action.WAIT
    assert await state_of(once, begun) is State.STARTED
    assert await ledger.renew() == 1, "it is still kept alive"
    assert (await journal.end(over(begun))).accepted
    # The control: what it does not run any more is anybody's, and to another owner it is lost.
    again = (await journal.begin(keyed(key="k2", recovery=recovery))).entry
    ledger.let_go(again)
    assert (await ledger.take(again)).action is not Action.REFUSE
    third = (await journal.begin(keyed(key="k3", recovery=recovery))).entry
    assert (await once.ledger(once.journal()).take(third)).action is not Action.REFUSE


async def test_who_stood_still_past_its_lease_does_not_begin_its_own_undo_again(once: Once) -> None:
    journal = once.journal(**GONE)
    ledger = once.ledger(journal)
    begun = (await journal.begin(keyed())).entry
    assert (await journal.end(over(begun))).accepted
    marked = await ledger.undo(begun)
    assert marked.action is Action.COMPENSATE
    assert (await ledger.undo(begun)).action is Action.WAIT
    assert await ledger.undone(marked.entry, done=False)
    # The control: what it is not at any more can be begun again, here and elsewhere.
    assert (await ledger.undo(begun)).action is Action.COMPENSATE
    assert (await once.ledger(once.journal()).undo(begun)).action is Action.COMPENSATE


async def test_a_keyed_call_whose_end_is_unknown_is_begun_again_by_one_of_those_who_ask(
    once: Once,
) -> None:
    journal = once.journal()
    call = keyed(recovery=Recovery.KEYED)
    begun = (await journal.begin(call)).entry
    said = {"error_code": "timed_out", "error_message": "late", "result": b"{}"}
    assert (await journal.end(over(begun, State.UNKNOWN, **said))).accepted
    brought = await once.journal().begin(call)
    assert brought.action is Action.REPLAY, "a queue that brings it twice asks for nothing"
    journals = [once.journal() for _ in range(8)]
    answers = await asyncio.gather(*(one.begin(keyed(recovery=Recovery.KEYED)) for one in journals))
    actions = [one.action for one in answers]
    assert (actions.count(Action.AGAIN), actions.count(Action.WAIT)) == (1, 7)
    at = actions.index(Action.AGAIN)
    again = answers[at].entry
    assert (again.call_id, again.fence, again.state) == (call.call_id, 2, State.STARTED)
    assert (again.doubt, again.error_code, again.ended_ns) == (True, "", 0)
    assert not (await journal.end(over(begun))).accepted, "its first owner has no say any more"
    assert (await journals[at].end(over(again, result=b'{"status":"success"}'))).accepted
    assert (await once.journal().begin(keyed())).action is Action.REPLAY


@pytest.mark.parametrize(
    ("recovery", "may_start", "approval", "action"),
    [
        (Recovery.KEYED, False, "", Action.REPLAY),
        (Recovery.KEYED, False, "apr_1", Action.AGAIN),
        (Recovery.PARK, True, "", Action.REPLAY),
        (Recovery.PROBED, True, "", Action.REPLAY),
    ],
)
async def test_an_unknown_call_is_begun_again_only_under_a_key_and_with_a_persons_word(
    once: Once,
    recovery: Recovery,
    may_start: bool,  # noqa: FBT001
    approval: str,
    action: Action,
) -> None:
    await once.put(
        keyed(recovery=recovery, state=State.UNKNOWN, fence=1, tried=True, approval=approval)
    )
    begun = await once.journal().begin(keyed(recovery=recovery), may_start=may_start)
    assert begun.action is action
