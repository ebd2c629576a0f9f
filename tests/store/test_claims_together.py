"""Claims and ends that wait at the same time are written together, and each is answered rightly."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from tests.store.entries import entry
from tests.store.kept import kept
from tests.store.once import Tables, keyed
from tests.store.places import FILE, MEMORY, POSTGRES, busy
from tests.store.together import another_world, audited, rows, together, told
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended, Journal, Outdated
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State
from toolgate.store import revision
from toolgate.store.claiming import Terms, claim
from toolgate.store.journal import TableJournal
from toolgate.store.records import tool_execution_log as log
from toolgate.tenancy.parts import KEYS, TENANT

replace = msgspec.structs.replace
pytestmark = pytest.mark.req("D1", "S3")
# Around the numbers of rows that a statement of its own is for.
MANY = [1, 2, 4, 5, 15, 16, 17, 21, 36, 200]
NO = Ended(accepted=False)
YES = Ended(accepted=True)


def nothing() -> Tables:
    raise AssertionError("twins do not wait for each other")


@pytest.fixture(params=[FILE, MEMORY])
async def tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    """A SQLite in which nothing has happened."""
    async with kept(request, tmp_path, nothing, Tables) as found:
        yield found


@pytest.fixture(params=[FILE, MEMORY, POSTGRES])
async def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, nothing, Tables) as found:
        yield found


def over(begun: Entry, state: State = State.SUCCEEDED, **fields: Any) -> Entry:
    return replace(begun, state=state, duration_ns=1_000, **fields)


async def begin(journal: Journal, many: int, **fields: Any) -> list[Entry]:
    """So many calls that run."""
    begun = [await journal.begin(keyed(key=f"k{at}", **fields)) for at in range(many)]
    return [one.entry for one in begun]


@pytest.mark.parametrize("many", MANY)
async def test_all_that_wait_are_begun_and_ended(tables: Tables, many: int) -> None:
    journal = tables.journal()
    intents = [keyed(key=f"k{at}") for at in range(many)]
    begun: list[Begun] = await together(tables, *map(journal.begin, intents))
    assert [one.action for one in begun] == [Action.RUN] * many
    assert [one.entry.call_id for one in begun] == [one.call_id for one in intents]
    assert {row["state"] for row in await rows(tables)} == {"started"}
    # Ends of these beside claims of others.
    states = [State.SUCCEEDED, State.FAILED, State.UNKNOWN]
    ends = [
        over(one.entry, states[at % 3], result=b"%d" % at, error_code=f"e{at}")
        for at, one in enumerate(begun)
    ]
    others = [entry() for _ in range(many)]
    mixed = [
        call
        for end, other in zip(ends, others, strict=True)
        for call in (journal.end(end), journal.begin(other))
    ]
    answers = await together(tables, *mixed)
    assert answers[::2] == [YES] * many
    assert [one.entry.call_id for one in answers[1::2]] == [one.call_id for one in others]
    found = {row["call_id"]: row for row in await rows(tables)}
    for at, one in enumerate(ends):
        row = found[one.call_id]
        assert (row["state"], row["error_code"]) == (one.state.value, f"e{at}")
        kept_entry = await journal.find("acme", one.call_id)
        assert kept_entry is not None
        assert kept_entry.result == b"%d" % at
        assert kept_entry.ended_ns
    assert await audited(tables) == sorted((one.call_id, one.state.value) for one in ends)


async def test_of_two_with_one_key_one_runs(tables: Tables) -> None:
    journal = tables.journal()
    first, twin, other = keyed(), keyed(), keyed(digest="another")
    alone = [keyed(key=f"k{at}") for at in range(2, 22)]
    answers = await together(tables, *map(journal.begin, [first, *alone, twin, other]))
    actions = [one.action for one in answers]
    assert actions == [*[Action.RUN] * 21, Action.WAIT, Action.CONFLICT]
    assert answers[-2].entry.call_id == first.call_id
    # A claim that waits beside the end of its twin may see it or not; behind it, it does.
    late, end = await together(
        tables, journal.begin(keyed()), journal.end(over(answers[0].entry, result=b"1"))
    )
    assert late.action in {Action.WAIT, Action.REPLAY}
    assert end == YES
    replayed = await journal.begin(keyed())
    assert (replayed.action, replayed.entry.result) == (Action.REPLAY, b"1")
    assert len(await rows(tables)) == 21


async def test_what_is_out_of_date_leaves_nothing_behind(anywhere: Tables) -> None:
    journal = anywhere.journal(outbox=True)
    old = await another_world(anywhere)
    new = await another_world(anywhere)
    done = await journal.begin(keyed(), basis=new)
    await journal.end(over(done.entry))
    before, events = await rows(anywhere), await told(anywhere)
    for intent, starts in ((keyed(key="k2"), True), (keyed(), True), (keyed(key="k3"), False)):
        with pytest.raises(Outdated):
            await journal.begin(intent, may_start=starts, basis=old)
    assert (await rows(anywhere), await told(anywhere)) == (before, events)
    # The positive controls: in the world of now, and where nobody asks for one.
    assert (await journal.begin(keyed(), basis=new)).action is Action.REPLAY
    assert (await journal.begin(keyed(key="k2"), basis=new)).action is Action.RUN
    assert (await journal.begin(keyed(key="k4"))).action is Action.RUN


async def test_what_changes_for_others_leaves_a_claim_alone(anywhere: Tables) -> None:
    journal, decided = anywhere.journal(), await another_world(anywhere)
    await anywhere.database.write(lambda one: revision.bump(one, (f"{TENANT}other", KEYS)))
    asked = (journal.begin(keyed(key=f"k{at}"), basis=decided) for at in range(3))
    begun = await asyncio.gather(*asked)
    assert [one.action for one in begun] == [Action.RUN] * 3
    # The control: its own tenant's part.
    await anywhere.database.write(lambda one: revision.bump(one, (f"{TENANT}acme",)))
    with pytest.raises(Outdated):
        await journal.begin(keyed(key="k4"), basis=decided)


async def test_what_is_out_of_date_is_so_alone(tables: Tables) -> None:
    journal, old = tables.journal(outbox=True), await another_world(tables)
    new = await another_world(tables)
    worlds = [old if at % 7 == 3 else new if at % 2 else None for at in range(40)]
    intents = [keyed(key=f"k{at}") for at in range(40)]
    answers = await together(
        tables, *(journal.begin(one, basis=at) for one, at in zip(intents, worlds, strict=True))
    )
    for world, answer in zip(worlds, answers, strict=True):
        assert isinstance(answer, Outdated) if world == old else answer.action is Action.RUN
    ours = [one.call_id for one, at in zip(intents, worlds, strict=True) if at != old]
    assert [row["call_id"] for row in await rows(tables)] == ours
    assert [call_id for call_id, _kind in await told(tables)] == ours


async def test_a_claim_whose_answer_was_lost_was_made_in_its_own_world(anywhere: Tables) -> None:
    """Sent once more, it finds itself; the world may have changed since."""
    journal = anywhere.journal()
    assert isinstance(journal, TableJournal)
    world, intent = await another_world(anywhere), keyed()
    begun = await journal.begin(intent, basis=world)
    await another_world(anywhere)
    terms = Terms(journal.owner, outbox=False, again=True, basis=world)

    async def sent(one: Entry, terms: Terms) -> Begun:
        return await anywhere.database.write(lambda connection: claim(connection, one, terms))

    found = await sent(intent, terms)
    assert (found.action, found.entry.call_id) == (begun.action, begun.entry.call_id)
    for one, how in ((keyed(key="k2"), terms), (intent, terms._replace(again=False))):
        with pytest.raises(Outdated):
            await sent(one, how)
    assert len(await rows(anywhere)) == 1


@pytest.mark.parametrize("lost", [0, 7, 20])
async def test_an_end_whose_fence_was_lost_is_refused_alone(tables: Tables, lost: int) -> None:
    journal = tables.journal(outbox=True)
    calls = await begin(journal, 21)
    begun = await told(tables)
    await tables.execute(
        log.update().where(log.c.call_id == calls[lost].call_id).values(fence=2, owner="another")
    )
    answers = await together(tables, *(journal.end(over(one)) for one in calls))
    assert answers == [NO if at == lost else YES for at in range(21)]
    good = [one.call_id for at, one in enumerate(calls) if at != lost]
    assert await audited(tables) == [(call_id, "succeeded") for call_id in good]
    assert len(await told(tables)) == len(begun) + 20
    found = {row["call_id"]: row["state"] for row in await rows(tables)}
    assert found.pop(calls[lost].call_id) == "started"
    assert set(found.values()) == {"succeeded"}


async def test_who_lost_a_call_is_not_told_what_its_new_owner_is(tables: Tables) -> None:
    """Both say at the same moment how it ended."""
    journal = tables.journal()
    [call] = await begin(journal, 1)
    await tables.execute(log.update().values(fence=2))
    ends = [over(call), over(replace(call, fence=2), State.FAILED), over(call, State.FAILED)]
    assert await together(tables, *map(journal.end, ends)) == [NO, YES, NO]
    assert await audited(tables) == [(call.call_id, "failed")]


async def test_an_end_that_is_sent_again_is_accepted_once(anywhere: Tables) -> None:
    await anywhere.lend("lease")
    journal = anywhere.journal(outbox=True)
    [call] = await begin(journal, 1)
    end = over(call, charges=(("lease", 7),))
    assert await journal.end(end, again=True) == YES, "nothing was there yet"
    events = await told(anywhere)
    assert await journal.end(end, again=True) == YES
    assert await journal.end(end) == NO, "who does not say so is somebody else"
    assert await journal.end(over(call, State.FAILED), again=True) == NO
    assert await journal.end(replace(end, fence=2), again=True) == NO
    assert await journal.end(over(replace(entry(), fence=1)), again=True) == NO
    assert await audited(anywhere) == [(call.call_id, "succeeded")]
    assert await told(anywhere) == events
    assert await anywhere.spent("lease") == 7


async def test_an_end_is_accepted_once_also_beside_itself(tables: Tables) -> None:
    await tables.lend("lease")
    journal = tables.journal()
    calls = await begin(journal, 5)
    end = over(calls[0], charges=(("lease", 7),))
    rest = [journal.end(over(one)) for one in calls[1:]]
    answers = await together(
        tables, journal.end(end), *rest, journal.end(end, again=True), journal.end(end)
    )
    assert answers == [YES, YES, YES, YES, YES, YES, NO]
    assert len(await audited(tables)) == 5
    assert await tables.spent("lease") == 7


async def test_who_wants_an_answer_is_told_of_that_call(tables: Tables) -> None:
    journal = tables.journal()
    calls = await begin(journal, 40, turn_id="first")
    for at in (3, 17, 38):
        later = await journal.begin(keyed(key=f"k{at}", turn_id=f"later{at}"))
        assert later.action is Action.WAIT
    ended = await together(tables, *(journal.end(over(one)) for one in calls))
    assert {at: one.wanted_by for at, one in enumerate(ended) if one.wanted_by} == {
        at: f"later{at}" for at in (3, 17, 38)
    }
    assert (await journal.end(over(calls[3]), again=True)).wanted_by == "later3"


async def test_each_end_that_is_accepted_is_charged_and_told(tables: Tables) -> None:
    journal = tables.journal(outbox=True)
    for lease in ("one", "two"):
        await tables.lend(lease, spent=1)
    calls = await begin(journal, 20)
    begun = await told(tables)
    lost = {2, 11}
    ends = [
        replace(over(one, charges=(("one", at), ("two", 1))), fence=9 if at in lost else one.fence)
        for at, one in enumerate(calls)
    ]
    answers = await together(tables, *map(journal.end, ends))
    assert [at for at, one in enumerate(answers) if not one.accepted] == sorted(lost)
    assert await tables.spent("one") == 1 + sum(set(range(20)) - lost)
    assert await tables.spent("two") == 1 + 18
    told_of = [call_id for call_id, _ in await told(tables)]
    for at, one in enumerate(calls):
        assert told_of.count(one.call_id) == (1 if at in lost else 2)
    assert len(begun) == 20


async def test_who_went_away_while_it_began_ends_behind_that(tables: Tables) -> None:
    journal = tables.journal()
    intents = [keyed(key=f"k{at}") for at in range(20)]
    async with busy(tables.database):
        claims = [asyncio.ensure_future(journal.begin(one)) for one in intents]
        await asyncio.sleep(0)
        left = claims[7]
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        end = over(replace(intents[7], fence=1), State.FAILED, error_code="cancelled")
        ending = asyncio.ensure_future(journal.end(end))
        await asyncio.sleep(0)
    assert await ending == YES
    begun = [await one for at, one in enumerate(claims) if at != 7]
    assert {one.action for one in begun} == {Action.RUN}
    found = {row["call_id"]: row["state"] for row in await rows(tables)}
    assert found.pop(intents[7].call_id) == "failed"
    assert list(found.values()) == ["started"] * 19
    assert (await journal.begin(keyed(key="k7"))).action is Action.RUN, "nothing was tried"


async def test_what_one_of_them_cannot_write_is_nobody_elses_trouble(tables: Tables) -> None:
    journal = tables.journal()
    calls = await begin(journal, 5)
    huge = over(calls[2], charges=(("lease", 1 << 70),))
    ends = [huge if one is calls[2] else over(one) for one in calls]
    answers = await together(tables, *map(journal.end, ends), journal.begin(entry()))
    assert [at for at, one in enumerate(answers) if isinstance(one, Exception)] == [2]
    assert len(await audited(tables)) == 4
    counted = await tables.rows(sa.select(sa.func.count()).select_from(log))
    assert counted[0][0] == 6
