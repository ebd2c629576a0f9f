"""What fails at whichever statement of a step behind a call: all of the step holds, or nothing."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.store.faults import failing, gone, taken_back
from tests.store.kept import kept
from tests.store.once import GONE, Tables, keyed, over, state_of
from tests.store.places import FILE, POSTGRES
from tests.store.test_once_faults import no_twin
from toolgate.errors import StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import State

pytestmark = pytest.mark.req("S3", "S4", "O2")
Step = Callable[[Tables, Journal, Entry], Awaitable[Any]]
# More than any of them has.
MOST = 8


@pytest.fixture(params=[FILE, POSTGRES])
async def tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, no_twin, Tables) as found:
        yield found


async def done(tables: Tables, journal: Journal, key: str) -> Entry:
    begun = (await journal.begin(keyed(key=key))).entry
    assert (await journal.end(over(begun))).accepted
    return begun


async def unknown(tables: Tables, journal: Journal, key: str) -> Entry:
    begun = (await journal.begin(keyed(key=key))).entry
    assert (await journal.end(over(begun, State.UNKNOWN))).accepted
    return begun


async def marked(tables: Tables, journal: Journal, key: str) -> Entry:
    return (await tables.ledger(journal).undo(await done(tables, journal, key))).entry


async def claimed(tables: Tables, journal: Journal, key: str) -> Entry:
    lost = keyed(key=key, recovery=Recovery.AGAIN)
    begun = (await tables.journal(**GONE).begin(lost)).entry
    return (await tables.ledger(journal).take(begun)).entry


async def undo(tables: Tables, journal: Journal, call: Entry) -> Any:
    return await tables.ledger(journal, outbox=True).undo(call)


async def undone(tables: Tables, journal: Journal, call: Entry) -> Any:
    return await tables.ledger(journal, outbox=True).undone(call, done=True)


async def settle(tables: Tables, journal: Journal, call: Entry) -> Any:
    ledger = tables.ledger(journal, outbox=True)
    return await ledger.settle(call, happened=True, who="boss", why="seen")


async def start(tables: Tables, journal: Journal, call: Entry) -> Any:
    return await tables.ledger(journal, outbox=True).start(call)


STEPS: dict[str, tuple[Any, Step, State, State]] = {
    "undo": (done, undo, State.SUCCEEDED, State.COMPENSATING),
    "undone": (marked, undone, State.COMPENSATING, State.COMPENSATED),
    "settle": (unknown, settle, State.UNKNOWN, State.SUCCEEDED),
    "start": (claimed, start, State.CLAIMED, State.STARTED),
}


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("error", [gone, taken_back])
@pytest.mark.parametrize("name", STEPS)
async def test_a_step_that_falls_at_any_statement_is_whole_or_nothing(
    tables: Tables, name: str, error: Callable[[], BaseException], *, after: bool
) -> None:
    prepare, step, first, last = STEPS[name]
    fell = 0
    for falls in range(MOST):
        journal = tables.journal()
        call = await prepare(tables, journal, f"k{falls}")
        before = len(await tables.changes() or [])
        with failing(falls, error, after=after), contextlib.suppress(StoreUnavailable):
            await step(tables, journal, call)
        state = await state_of(tables, call)
        told = len(await tables.changes() or []) - before
        assert (state, told) in {(first, 0), (last, 1)}, falls
        if state is first:
            fell += 1
            assert await step(tables, journal, call), "and it can be tried again"
            assert await state_of(tables, call) is last
    assert 0 < fell < MOST or error is taken_back, "some fell, and the last had nothing to fall at"
