"""Whatever waits together gives the rows and the answers that it would give one after the other."""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.entries import entry
from tests.store.once import Tables, keyed
from tests.store.together import another_world, audited, one_by_one, rows, together, told
from tests.thorough import some
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended, Journal
from toolgate.ledger.state import State
from toolgate.store import sqlite
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite

replace = msgspec.structs.replace
pytestmark = pytest.mark.req("D1", "S3")
# So many calls run already.
RUNNING = 6
LEASE = "lease"


class Claim(NamedTuple):
    """A call that is to begin: under one of a few keys, or none."""

    key: int | None
    digest: str
    turn: str
    outdated: bool
    may_start: bool
    # Its caller goes away, and says at once that it has not tried it.
    leaves: bool


class End(NamedTuple):
    """How one of those that run ended, as its owner says, or somebody who was."""

    call: int
    state: State
    fence: int
    again: bool


CLAIMS = st.builds(
    Claim,
    key=st.none() | st.integers(0, RUNNING + 1),
    digest=st.sampled_from(["d1", "d1", "d2"]),
    turn=st.sampled_from(["first", "later"]),
    outdated=st.integers(0, 5).map(lambda number: number == 0),
    may_start=st.integers(0, 5).map(bool),
    leaves=st.integers(0, 5).map(lambda number: number == 0),
)
OVER = (State.SUCCEEDED, State.FAILED, State.UNKNOWN)


@st.composite
def ends(draw: st.DrawFn) -> list[End]:
    """One state for each call: which of two comes first is nobody's to say."""
    how = [draw(st.sampled_from(OVER)) for _ in range(RUNNING)]
    drawn = st.tuples(st.integers(0, RUNNING - 1), st.sampled_from([1, 1, 1, 2]), st.booleans())
    return [
        End(call, how[call], fence, again)
        for call, fence, again in draw(st.lists(drawn, max_size=12))
    ]


def shown(answers: Sequence[Any]) -> list[object]:
    """Without what is a store's own."""
    found: list[object] = []
    for one in answers:
        if isinstance(one, Begun):
            found.append((one.action, one.entry.call_id, one.entry.state, one.entry.fence))
        elif isinstance(one, Ended):
            found.append((one.accepted, one.wanted_by))
        else:
            found.append(repr(one))
    return found


Ask = Callable[[Journal], Coroutine[Any, Any, Any]]


def asked(claim: Claim, intent: Entry, worlds: tuple[Basis, Basis]) -> Ask:
    world = worlds[0 if claim.outdated else 1]
    return lambda journal: journal.begin(intent, may_start=claim.may_start, basis=world)


def said(call: Entry, end: End) -> Ask:
    closed = replace(call, state=end.state, fence=end.fence, charges=((LEASE, 1),), duration_ns=1)
    return lambda journal: journal.end(closed, again=end.again)


def intent_of(claim: Claim) -> Entry:
    if claim.key is None:
        return entry(turn_id=claim.turn)
    return keyed(key=f"k{claim.key}", digest=claim.digest, turn_id=claim.turn)


async def came_of(
    how: Callable[..., Coroutine[Any, Any, list[Any]]],
    running: Sequence[Entry],
    asks: Callable[[tuple[Basis, Basis]], Sequence[Ask]],
    order: Sequence[int],
) -> tuple[object, ...]:
    """Everything that can be seen of it, answers in the order in which they were asked for."""
    database = Sqlite(None)
    try:
        await migrate(database)
        tables = Tables(database)
        await tables.lend(LEASE)
        worlds = await another_world(tables), await another_world(tables)
        journal = tables.journal(outbox=True)
        for one in running:
            await journal.begin(one)
        wanted = asks(worlds)
        answers = await how(tables, *(wanted[at](journal) for at in order))
        by_place = dict(zip(order, shown(answers), strict=True))
        return (
            [by_place[at] for at in range(len(wanted))],
            await rows(tables),
            await audited(tables),
            await told(tables),
            await tables.spent(LEASE),
        )
    finally:
        await database.close()


# Each example makes two stores.
@pytest.mark.timeout(180)
@given(claims=st.lists(CLAIMS, max_size=20), over=ends(), data=st.data())
@settings(max_examples=some(15, 60))
async def test_any_order_in_one_batch_is_as_good_as_one_after_the_other(
    claims: list[Claim], over: list[End], data: st.DataObject
) -> None:
    """Claims go first: of what waits together, nobody can say that an end was there before."""
    running = [keyed(key=f"k{at}", turn_id="first") for at in range(RUNNING)]
    intents = [intent_of(one) for one in claims]
    left = [at for at, one in enumerate(claims) if one.leaves]

    def asks(worlds: tuple[Basis, Basis]) -> list[Ask]:
        begins = [asked(one, intents[at], worlds) for at, one in enumerate(claims)]
        ending = [said(running[one.call], one) for one in over]
        leaving = [said(intents[at], End(at, State.FAILED, 1, again=False)) for at in left]
        return [*begins, *ending, *leaving]

    first, many = len(claims), len(claims) + len(over) + len(left)
    in_turn = list(range(many))
    # Claims among themselves, and ends among themselves, come as they were sent.
    places = sorted(data.draw(st.permutations(in_turn), label="places")[:first])
    mixed = list(range(first, many))
    for at, place in enumerate(places):
        mixed.insert(place, at)
    alone = await came_of(one_by_one, running, asks, in_turn)
    batched = await came_of(together, running, asks, mixed)
    assert batched == alone


async def test_a_batch_is_what_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what waits together is in one commit, and one after the other is not."""
    sizes: list[int] = []
    real = sqlite._committed  # pyright: ignore[reportPrivateUsage]

    def counted(connection: Any, batch: list[Any], look: Any) -> list[Any]:
        sizes.append(len(batch))
        return real(connection, batch, look)

    database = Sqlite(tmp_path / "toolgate.db")
    await migrate(database)
    tables = Tables(database)
    monkeypatch.setattr(sqlite, "_committed", counted)
    for how, expected in ((together, [1, 9]), (one_by_one, [1] * 9)):
        sizes.clear()
        journal = tables.journal()
        await how(tables, *(journal.begin(entry()) for _ in range(9)))
        assert sizes == expected
    await database.close()
