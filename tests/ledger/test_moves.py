"""A journal moves states along the moves that are drawn in one place, and no others."""

from collections.abc import AsyncGenerator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.entries import entry
from tests.thorough import some
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
    found = await journal.find("acme", call_id)
    return None if found is None else found.state


@pytest.mark.parametrize("second", list(State))
@pytest.mark.parametrize("first", list(State))
async def test_a_journal_makes_exactly_the_moves_that_are_drawn(
    journal: Journal, first: State, second: State
) -> None:
    begun = (await journal.begin(entry())).entry
    expected = State.STARTED
    for asked in (first, second):
        ended = await journal.end(msgspec.structs.replace(begun, state=asked))
        assert ended.accepted is (asked in MOVES[expected])
        expected = asked if ended.accepted else expected
        assert await state_of(journal, begun.call_id) is expected


@given(path=st.lists(states, max_size=6))
@settings(
    max_examples=some(20, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_whatever_is_asked_in_whatever_order_a_state_only_moves_as_drawn(
    journal: Journal, path: list[State]
) -> None:
    begun = (await journal.begin(entry())).entry
    expected = State.STARTED
    for number, asked in enumerate(path, 1):
        over = msgspec.structs.replace(begun, state=asked, duration_ns=number * 1_000)
        await journal.end(over)
        expected = asked if asked in MOVES[expected] else expected
        assert await state_of(journal, begun.call_id) is expected
