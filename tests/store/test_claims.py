"""Of calls with one key one runs, over every store; the others wait for its answer or have it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.kept import KINDS
from tests.store.once import FLEETING, GONE, Once, keyed, opened, over, state_of
from tests.store.places import WALLED
from toolgate import clock
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State

pytestmark = pytest.mark.req("S2", "S3")


@pytest.fixture(params=dict.fromkeys((*KINDS, WALLED)))
async def once(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Once]:
    """As everywhere, and always for a role that row security is in force for as well."""
    async with opened(request, tmp_path) as found:
        yield found


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


async def test_who_only_looks_has_the_answer_once_there_is_one_and_begins_nothing(
    once: Once,
) -> None:
    ours, theirs = once.journal(), once.journal()
    first, second = keyed(), keyed()
    assert await theirs.answering(second) is None
    begun = await ours.begin(first)
    assert begun.action is Action.RUN, "to look has taken no key"
    assert await theirs.answering(second) is None, "it runs"
    await ours.end(over(begun.entry, result=b'{"status":"success"}'))
    found = await theirs.answering(second)
    assert found is not None
    assert (found.call_id, found.result) == (first.call_id, b'{"status":"success"}')
    for other in ({"digest": "d2"}, {"key": "k2"}, {"key": ""}, {"tenant": "globex"}):
        assert await theirs.answering(keyed(**other)) is None
    assert await ours.find("acme", second.call_id) is None


async def test_who_only_looks_finds_no_failure_that_may_go_away(once: Once) -> None:
    journal = once.journal()
    begun = await journal.begin(keyed())
    await journal.end(over(begun.entry, State.FAILED))
    assert await journal.answering(keyed()) is None
    assert (await journal.begin(keyed())).action is Action.RUN


async def test_a_call_that_is_brought_twice_under_its_own_id_is_a_duplicate(once: Once) -> None:
    ours, theirs = once.journal(), once.journal()
    call = keyed()
    begun = await ours.begin(call)
    assert (await theirs.begin(call)).action is Action.WAIT
    await ours.end(over(begun.entry, result=b'{"status":"success"}'))
    for journal in (ours, theirs):
        replay = await journal.begin(call)
        assert (replay.action, replay.entry.result) == (Action.REPLAY, b'{"status":"success"}')


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
