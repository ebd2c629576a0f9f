"""Once-only and what comes after, over every store: the twins in memory, SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from tests.store.entries import entry, pure
from tests.store.kept import KINDS
from tests.store.once import FLEETING, GONE, Once, keyed, opened
from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import Entry
from toolgate.ledger.ledger import Which
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import OPEN, State

pytestmark = pytest.mark.req("S2", "S3")
replace = msgspec.structs.replace
SAFE = [Recovery.AGAIN, Recovery.KEYED]


@pytest.fixture(params=KINDS)
async def once(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Once]:
    async with opened(request, tmp_path) as found:
        yield found


async def state_of(once: Once, call: Entry) -> State:
    found = await once.journal().find(call.tenant, call.call_id)
    assert found is not None
    return found.state


def over(begun: Entry, state: State = State.SUCCEEDED, **fields: object) -> Entry:
    return replace(begun, state=state, **fields)


async def test_the_first_claim_runs_and_is_on_record_with_its_fence(once: Once) -> None:
    before = clock.unix_ns()
    call = keyed()
    begun = await once.journal(lease=15.0, ttl=60.0).begin(call)
    assert begun.action is Action.RUN
    assert (begun.entry.fence, begun.entry.tried, begun.entry.state) == (1, True, State.STARTED)
    assert begun.entry.lease_ns is not None
    assert begun.entry.expires_ns is None, "its key is taken until it has ended"
    # The server's clock need not be ours, but it is the same machine's here.
    assert before + 14e9 < begun.entry.lease_ns < before + 30e9
    found = await once.journal().find("acme", call.call_id)
    assert found == replace(begun.entry, args_hash=found.args_hash if found else "")


async def test_a_duplicate_waits_while_the_first_runs_and_then_has_its_answer(once: Once) -> None:
    ours, theirs = once.journal(), once.journal()
    first, second = keyed(), keyed()
    begun = await ours.begin(first)
    waiting = await theirs.begin(second)
    assert (waiting.action, waiting.entry.call_id) == (Action.WAIT, first.call_id)
    await ours.end(over(begun.entry, result=b'{"status":"success"}'))
    replay = await theirs.begin(second)
    assert (replay.action, replay.entry.call_id) == (Action.REPLAY, first.call_id)
    assert replay.entry.result == b'{"status":"success"}'
    assert await ours.find("acme", second.call_id) is None


async def test_other_arguments_under_the_same_key_are_a_conflict(once: Once) -> None:
    journal = once.journal()
    begun = await journal.begin(keyed())
    assert (await journal.begin(keyed(digest="d2"))).action is Action.CONFLICT
    await journal.end(over(begun.entry))
    assert (await journal.begin(keyed(digest="d2"))).action is Action.CONFLICT


@pytest.mark.parametrize(
    "other", [{"tenant": "globex"}, {"scope": "clerk/3/eve/turn"}, {"key": "k2"}]
)
async def test_another_tenant_owner_or_key_is_another_call(
    once: Once, other: dict[str, str]
) -> None:
    journal = once.journal()
    assert (await journal.begin(keyed())).action is Action.RUN
    assert (await journal.begin(keyed(**other))).action is Action.RUN
    assert (await journal.begin(keyed(**other))).action is Action.WAIT


async def test_calls_without_a_key_are_all_their_own_business(once: Once) -> None:
    journal = once.journal()
    for _ in range(3):
        assert (await journal.begin(keyed(key=""))).action is Action.RUN


async def test_a_key_whose_time_is_over_is_given_to_a_new_call(once: Once) -> None:
    journal = once.journal(**FLEETING)
    first, second = keyed(), keyed(digest="d2")
    await journal.end(over((await journal.begin(first)).entry))
    begun = await journal.begin(second)
    assert (begun.action, begun.entry.call_id) == (Action.RUN, second.call_id)
    assert await state_of(once, first) is State.SUCCEEDED


async def test_a_running_calls_key_is_not_free_however_long_it_takes(once: Once) -> None:
    journal = once.journal(**FLEETING)
    await journal.begin(keyed())
    assert (await journal.begin(keyed())).action is Action.WAIT


def kept_for(ended: Entry | None) -> float:
    """Seconds."""
    assert ended is not None
    assert ended.expires_ns is not None
    return (ended.expires_ns - ended.ended_ns) / 1e9


async def test_a_keys_time_begins_when_its_call_ends(once: Once) -> None:
    before = clock.unix_ns()
    journal = once.journal(ttl=60.0)
    begun = (await journal.begin(keyed())).entry
    # As if it had begun long ago.
    await journal.end(over(begun, started_ns=1, expires_ns=1))
    found = await journal.find("acme", begun.call_id)
    assert kept_for(found) == pytest.approx(60.0, abs=1.0)
    assert found is not None
    assert found.ended_ns > before - 10**9
    assert (await journal.begin(keyed())).action is Action.REPLAY


@pytest.mark.parametrize("happened", [True, False])
async def test_and_anew_when_it_is_known_how_it_ended(once: Once, *, happened: bool) -> None:
    journal, lost = once.journal(ttl=60.0), once.journal(**GONE)
    ledger = once.ledger(journal)
    begun = (await lost.begin(keyed())).entry
    parked = await ledger.take(begun)
    assert (parked.action, parked.entry.expires_ns) == (Action.PARK, None)
    assert await ledger.settle(parked.entry, happened=happened, who="ops", why="seen")
    found = await journal.find("acme", begun.call_id)
    assert kept_for(found) == pytest.approx(60.0, abs=1.0)


async def test_the_key_of_what_takes_a_call_back_is_never_free(once: Once) -> None:
    journal = once.journal(**FLEETING)
    undo = keyed(scope="clerk/3/ann/undo", key="call_1", undo_of="call_1")
    await journal.end(over((await journal.begin(undo)).entry))
    again = keyed(scope="clerk/3/ann/undo", key="call_1", undo_of="call_1")
    replay = await journal.begin(again)
    assert (replay.action, replay.entry.call_id) == (Action.REPLAY, undo.call_id)


async def test_a_failure_that_may_go_away_gives_its_key_back(once: Once) -> None:
    journal = once.journal()
    first, second = keyed(), keyed()
    await journal.end(over((await journal.begin(first)).entry, State.FAILED))
    begun = await journal.begin(second)
    assert (begun.action, begun.entry.call_id, begun.entry.fence) == (
        Action.RUN,
        second.call_id,
        1,
    )
    assert await state_of(once, first) is State.FAILED


async def test_a_failure_that_would_come_again_is_kept(once: Once) -> None:
    journal = once.journal()
    first = keyed()
    begun = await journal.begin(first)
    await journal.end(over(begun.entry, State.FAILED, permanent=True, error_code="tool_error"))
    replay = await journal.begin(keyed())
    assert (replay.action, replay.entry.call_id) == (Action.REPLAY, first.call_id)
    assert replay.entry.error_code == "tool_error"


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
    taken = await once.ledger(once.journal()).take((await _lost(once))[0])
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


async def _lost(once: Once) -> list[Entry]:
    return list(await once.ledger(once.journal()).lost(10))


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
    found = await _lost(once)
    assert [one.call_id for one in found] == [call.call_id]
    ours, theirs = once.ledger(once.journal()), once.ledger(once.journal())
    taken = await ours.take(found[0])
    assert (taken.action, taken.entry.state, taken.entry.fence) == (action, state, 2)
    assert (await theirs.take(found[0])).action is Action.REFUSE
    assert (await theirs.take(taken.entry)).action is Action.REFUSE
    assert await _lost(once) == []
    assert not (await once.journal().end(over(begun.entry))).accepted
    if state is State.CLAIMED:
        assert await ours.start(taken.entry)
        assert (await once.journal().end(over(taken.entry))).accepted


async def test_a_call_whose_owner_may_be_there_is_not_lost(once: Once) -> None:
    await once.journal(lease=60.0).begin(keyed(recovery=Recovery.AGAIN))
    missing = keyed(key="k2", recovery=Recovery.AGAIN, fence=1, tried=True, owner="somebody")
    await once.put(missing)
    assert await _lost(once) == []
    assert (await once.ledger(once.journal()).take(missing)).action is Action.REFUSE
    assert (await once.journal().begin(keyed(key="k2"))).action is Action.WAIT
    zero = keyed(key="k3", recovery=Recovery.AGAIN, fence=1, tried=True, lease_ns=0)
    await once.put(zero)
    assert [one.call_id for one in await _lost(once)] == [zero.call_id]


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


async def test_what_took_a_call_back_answers_for_it_however_late(once: Once) -> None:
    journal = once.journal(**FLEETING)
    undo = {"scope": "clerk/3/ann/undo", "key": "call_1", "undo_of": "call_1"}
    first = (await journal.begin(keyed(**undo))).entry
    await journal.end(over(first))
    assert (await journal.begin(keyed(**undo))).action is Action.REPLAY
    # Without the link it is a key like any other, and its time is over.
    plain = (await journal.begin(keyed())).entry
    await journal.end(over(plain))
    assert (await journal.begin(keyed())).action is Action.RUN


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
    journal = once.journal(**GONE)
    begun = (await journal.begin(entry(recovery=Recovery.AGAIN))).entry
    ledger = once.ledger(journal)
    assert (await ledger.take(begun)).action is Action.AGAIN
    assert await ledger.renew() == 1
    other = once.journal()
    await other.end(over(begun, fence=7))
    assert await ledger.renew() == 1
    await journal.end(over(begun, fence=7))
    assert await ledger.renew() == 0


@pytest.mark.parametrize(
    ("state", "action"), [(State.SUCCEEDED, Action.REPLAY), (State.FAILED, Action.RUN)]
)
async def test_an_operators_word_settles_what_nobody_saw_once(
    once: Once, state: State, action: Action
) -> None:
    happened = state is State.SUCCEEDED
    journal = once.journal()
    ledger = once.ledger(journal)
    call = keyed()
    begun = (await journal.begin(call)).entry
    assert not await ledger.settle(begun, happened=happened, who="ops", why="seen")
    await journal.end(over(begun, State.UNKNOWN))
    assert await ledger.settle(begun, happened=happened, who="ops", why="seen")
    assert await state_of(once, call) is state
    assert not await ledger.settle(begun, happened=not happened, who="ops", why="no")
    assert (await journal.begin(keyed())).action is action
    ended = ["call.ended unknown", f"call.settled {state}"]
    assert await once.changes() in (None, ended)


async def test_only_the_own_tenant_can_settle_or_undo(once: Once) -> None:
    journal = once.journal()
    ledger = once.ledger(journal)
    begun = (await journal.begin(entry())).entry
    await journal.end(over(begun, State.UNKNOWN))
    theirs = replace(begun, tenant="globex")
    assert not await ledger.settle(theirs, happened=True, who="ops", why="")
    assert (await ledger.undo(theirs)).action is Action.REFUSE
    assert (await ledger.take(theirs)).action is Action.REFUSE
    assert not (await journal.end(replace(theirs, state=State.SUCCEEDED))).accepted
    assert await ledger.find("globex", begun.call_id) is None
    assert await state_of(once, begun) is State.UNKNOWN


@pytest.mark.req("S4")
async def test_a_call_is_taken_back_once(once: Once) -> None:
    journal = once.journal()
    ledger = once.ledger(journal)
    call = keyed()
    begun = (await journal.begin(call)).entry
    assert (await ledger.undo(begun)).action is Action.REFUSE
    await journal.end(over(begun))
    undoing = await ledger.undo(begun)
    assert (undoing.action, undoing.entry.state) == (Action.COMPENSATE, State.COMPENSATING)
    assert (await once.ledger(once.journal()).undo(begun)).action is Action.WAIT
    assert not await ledger.undone(begun, done=True)
    assert await ledger.undone(undoing.entry, done=True)
    assert not await ledger.undone(undoing.entry, done=True)
    assert (await ledger.undo(begun)).action is Action.REPLAY
    assert await state_of(once, call) is State.COMPENSATED
    assert (await journal.begin(keyed())).action is Action.REPLAY
    assert await once.changes() in (
        None,
        ["call.ended succeeded", "call.undo compensating", "call.ended compensated"],
    )


@pytest.mark.req("S4")
async def test_an_undo_that_failed_says_why_and_can_be_tried_again(once: Once) -> None:
    journal = once.journal()
    ledger = once.ledger(journal)
    begun = (await journal.begin(entry())).entry
    await journal.end(over(begun))
    undoing = (await ledger.undo(begun)).entry
    assert await ledger.undone(undoing, done=False, why="it is gone")
    found = await ledger.find("acme", begun.call_id)
    assert found is not None
    assert (found.state, found.error_message) == (State.COMPENSATION_FAILED, "it is gone")
    again = await ledger.undo(found)
    assert (again.action, again.entry.fence) == (Action.COMPENSATE, undoing.fence + 1)


@pytest.mark.req("S4")
async def test_an_undo_whose_owner_is_lost_is_resumed_by_another(once: Once) -> None:
    journal = once.journal(**GONE)
    begun = (await journal.begin(entry())).entry
    await journal.end(over(begun))
    first = (await once.ledger(journal).undo(begun)).entry
    assert [one.call_id for one in await _lost(once)] == [begun.call_id]
    other = once.ledger(once.journal())
    second = await other.take(first)
    assert (second.action, second.entry.fence) == (Action.COMPENSATE, first.fence + 1)
    assert not await once.ledger(journal).undone(first, done=True)
    assert await other.undone(second.entry, done=True)


@pytest.mark.req("S4")
@pytest.mark.parametrize(("window", "action"), [(0.0, Action.REFUSE), (60.0, Action.COMPENSATE)])
async def test_a_call_is_taken_back_while_there_is_time(
    once: Once, window: float, action: Action
) -> None:
    journal = once.journal()
    begun = (await journal.begin(entry())).entry
    plan = msgspec.json.encode({"tool": "mail.recall", "args": {}, "window": window})
    await journal.end(over(begun, plan=plan))
    assert (await once.ledger(journal).undo(begun)).action is action


async def test_a_later_turn_is_given_the_answer(once: Once) -> None:
    journal = once.journal()
    begun = (await journal.begin(keyed(turn_id="first"))).entry
    assert (await journal.begin(keyed(turn_id="first"))).action is Action.WAIT
    await once.journal().begin(keyed(turn_id="second"))
    ended = await journal.end(over(begun))
    assert (ended.accepted, ended.wanted_by) == (True, "second")


async def test_of_64_who_begin_at_once_one_runs(once: Once) -> None:
    journals = [once.journal() for _ in range(4)]
    calls = [keyed() for _ in range(64)]
    begun = await asyncio.gather(
        *(journals[number % 4].begin(call) for number, call in enumerate(calls))
    )
    actions = [one.action for one in begun]
    assert (actions.count(Action.RUN), actions.count(Action.WAIT)) == (1, 63)
    assert len({one.entry.call_id for one in begun}) == 1


@pytest.mark.parametrize("recovery", SAFE)
async def test_of_16_who_find_a_lost_call_one_runs_it(once: Once, recovery: Recovery) -> None:
    await once.journal(**GONE).begin(keyed(recovery=recovery))
    journals = [once.journal() for _ in range(16)]
    begun = await asyncio.gather(*(journal.begin(keyed()) for journal in journals))
    actions = [one.action for one in begun]
    assert (actions.count(Action.AGAIN), actions.count(Action.WAIT)) == (1, 15)


async def test_without_a_persons_word_a_call_is_answered_but_not_begun(once: Once) -> None:
    journal = once.journal()
    call = keyed()
    assert (await journal.begin(call, may_start=False)).action is Action.ASK
    assert await journal.find("acme", call.call_id) is None
    begun = (await journal.begin(call)).entry
    assert (await journal.begin(keyed(), may_start=False)).action is Action.WAIT
    await journal.end(over(begun))
    assert (await journal.begin(keyed(), may_start=False)).action is Action.REPLAY


def waiting(**fields: object) -> Entry:
    return keyed(state=State.WAITING, approval="a1", **fields)


@pytest.mark.req("S6")
async def test_an_approval_is_used_up_by_the_call_that_waited_for_it(once: Once) -> None:
    journal = once.journal()
    waited = waiting()
    await once.put(waited)
    await once.approve("a1", waited.call_id)
    begun = await journal.begin(keyed(approval="a1"))
    assert (begun.action, begun.entry.call_id) == (Action.RUN, waited.call_id)
    assert (begun.entry.state, begun.entry.fence) == (State.STARTED, 1)
    assert begun.entry.tried
    assert await once.approval("a1") == "used"
    assert (await journal.begin(keyed(approval="a1"))).action is Action.WAIT
    assert (await journal.end(over(begun.entry))).accepted
    assert (await journal.begin(keyed(approval="a1"))).action is Action.REPLAY


@pytest.mark.req("S6")
async def test_an_approval_that_is_not_to_be_had_starts_nothing(once: Once) -> None:
    journal = once.journal()
    waited = waiting(key="")
    await once.put(waited)
    await once.approve("late", waited.call_id, expires_ns=1)
    await once.approve("theirs", waited.call_id, tenant="globex")
    await once.approve("other", "call_of_nobody")
    for approval in ("late", "theirs", "other", "none"):
        begun = await journal.begin(keyed(key="", approval=approval))
        assert begun.action is Action.REFUSE
    await once.approve("a1", waited.call_id)
    assert (await journal.begin(keyed(key="", digest="d2", approval="a1"))).action is Action.REFUSE
    assert await once.approval("a1") == "approved"
    assert (await journal.begin(keyed(key="", approval="a1"))).action is Action.RUN
    assert (await journal.begin(keyed(key="", approval="a1"))).action is Action.REFUSE


@pytest.mark.req("S6")
async def test_an_approval_is_kept_where_another_call_has_the_answer(once: Once) -> None:
    journal = once.journal()
    done = keyed()
    await journal.end(over((await journal.begin(done)).entry))
    waited = waiting(key="")
    await once.put(waited)
    await once.approve("a1", waited.call_id)
    replay = await journal.begin(keyed(approval="a1"))
    assert (replay.action, replay.entry.call_id) == (Action.REPLAY, done.call_id)
    assert await once.approval("a1") == "approved"


@pytest.mark.req("S6")
async def test_of_16_who_use_an_approval_at_once_one_runs(once: Once) -> None:
    waited = waiting(key="")
    await once.put(waited)
    await once.approve("a1", waited.call_id)
    begun = await asyncio.gather(
        *(once.journal().begin(keyed(key="", approval="a1")) for _ in range(16))
    )
    actions = [one.action for one in begun]
    assert (actions.count(Action.RUN), actions.count(Action.REFUSE)) == (1, 15)


async def test_side_effects_are_found_by_what_they_are(once: Once) -> None:
    journal = once.journal()
    ledger = once.ledger(journal)
    calls = [
        entry(turn_group="t1", scope="clerk/3/ann/turn", tool="mail.send"),
        entry(turn_group="t1", scope="clerk/3/eve/turn", tool="mail.send", user="eve"),
        entry(turn_group="t2", scope="clerk/3/ann/turn", tool="pay", chain="c1"),
        entry(turn_group="t2", scope="robot/3/ann/key", tool="pay", agent="robot"),
        entry(tenant="globex", turn_group="t1", scope="clerk/3/ann/turn"),
    ]
    for call in calls:
        await journal.begin(call)
    journal.note(pure())
    await journal.end(over(replace(calls[2], fence=1)))

    async def found(**which: object) -> list[int]:
        asked = msgspec.convert({"tenant": "acme", **which}, Which)
        ids = [call.call_id for call in calls]
        return [ids.index(one.call_id) for one in await ledger.search(asked)]

    assert await found() == [3, 2, 1, 0]
    assert await found(turn_group="t1") == [1, 0]
    assert await found(turn_group="t1", scope="clerk/3/ann") == [0]
    assert await found(scope="robot/3/ann") == [3]
    assert await found(scope="clerk/3") == []
    assert await found(tool="pay", agent="clerk") == [2]
    assert await found(chain="c1") == [2]
    assert await found(user="eve") == [1]
    assert await found(states=["succeeded", "unknown"]) == [2]
    assert await found(states=sorted(OPEN)) == [3, 1, 0]
    assert await found(since_ns=calls[2].started_ns) == [3, 2]
    assert await found(tenant="globex") == [4]
    assert await found(limit=2) == [3, 2]
    assert await found(limit=2, before=calls[2].call_id) == [1, 0]
    assert await found(limit=0) == []
    with pytest.raises(InvalidRequest, match="cursor"):
        await found(before=calls[4].call_id)


async def test_a_call_is_found_wherever_it_stands(once: Once) -> None:
    journal = once.journal()
    effect, noted, theirs = entry(), pure(), pure(tenant="globex")
    begun = (await journal.begin(effect)).entry
    for one in (pure(), noted, theirs, pure()):
        journal.note(one)
    for _ in range(2):
        found = await journal.find("acme", noted.call_id)
        assert found is not None
        assert (found.call_id, found.state) == (noted.call_id, State.SUCCEEDED)
        await journal.drain()
    assert await journal.find("acme", begun.call_id) is not None
    for tenant, call_id in (
        ("acme", theirs.call_id),
        ("globex", begun.call_id),
        ("acme", noted.call_id[:-1]),
        ("acme", ""),
        ("", noted.call_id),
    ):
        assert await journal.find(tenant, call_id) is None
