"""A call that needs a person is begun with their word, which is good for one, over every store."""

import asyncio

import pytest

from tests.store.once import Once, keyed, over
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State

pytestmark = pytest.mark.req("S2", "S3")


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
