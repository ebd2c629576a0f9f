"""States only move forward, along the moves that are drawn in one place."""

from collections.abc import AsyncGenerator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.entries import entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import MOVES, State
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("O2")
states = st.sampled_from(list(State))


@pytest.fixture(params=["twin", "table"])
async def journal(request: pytest.FixtureRequest) -> AsyncGenerator[Journal]:
    if request.param == "twin":
        yield MemoryJournal()
        return
    database = Sqlite(None)
    await migrate(database)
    yield TableJournal(database)
    await database.close()


async def state_of(journal: Journal, call_id: str) -> State | None:
    found = [one.state for one in await journal.entries("acme") if one.call_id == call_id]
    return found[0] if found else None


def test_every_state_has_its_moves() -> None:
    assert MOVES.keys() == {None, *State}


def test_only_what_has_started_can_move_and_never_back() -> None:
    assert MOVES[None] == set(State)
    assert MOVES[State.STARTED] == set(State) - {State.STARTED}
    assert all(not MOVES[state] for state in State if state is not State.STARTED)


@given(path=st.lists(states, max_size=8))
def test_no_path_along_the_moves_comes_by_a_state_twice(path: list[State]) -> None:
    at: State | None = None
    been: list[State] = []
    for step in path:
        if step in MOVES[at]:
            at = step
            been.append(step)
    assert len(set(been)) == len(been) <= 2


@pytest.mark.parametrize("before", list(State))
@pytest.mark.parametrize("after", list(State))
async def test_a_journal_makes_exactly_the_moves_that_are_drawn(
    journal: Journal, before: State, after: State
) -> None:
    intent = entry(state=before)
    await journal.begin(intent)
    await journal.end(msgspec.structs.replace(intent, state=after))
    moved = after in MOVES[before]
    assert await state_of(journal, intent.call_id) is (after if moved else before)


@given(first=states, rest=st.lists(states, max_size=6))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_whatever_is_asked_in_whatever_order_a_state_only_moves_forward(
    journal: Journal, first: State, rest: list[State]
) -> None:
    intent = entry(state=first)
    await journal.begin(intent)
    expected = first
    for number, asked in enumerate(rest, 1):
        await journal.end(msgspec.structs.replace(intent, state=asked, duration_ns=number * 1_000))
        expected = asked if asked in MOVES[expected] else expected
        assert await state_of(journal, intent.call_id) is expected
