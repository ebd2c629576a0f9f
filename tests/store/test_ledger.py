"""What comes after a call, over every store: it is found, settled once and taken back once."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.store.entries import entry, pure
from tests.store.once import GONE, Once, keyed, lost_in, over, state_of
from toolgate.errors import InvalidRequest
from toolgate.ledger.ledger import Which
from toolgate.ledger.machine import Action
from toolgate.ledger.state import OPEN, State

pytestmark = pytest.mark.req("S2", "S3")


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
    assert [one.call_id for one in await lost_in(once)] == [begun.call_id]
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
    begun = [(await journal.begin(call)).entry for call in calls]
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
    assert await found(since_ns=begun[2].started_ns) == [3, 2]
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
