"""What a statement may change is what the machine says: the model speaks for every store."""

import re
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

import toolgate.store
from tests.people.test_approvals_kept import approval
from tests.store.kept import TWIN
from tests.store.once import FAR_NS, Once, Tables, Twins, keyed, opened, over, state_of
from tests.store.places import FILE, POSTGRES
from toolgate import clock
from toolgate.ledger.approval import Approvals
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action, Deny, Event, Finish, Renew, Slot, Tick, step
from toolgate.ledger.state import State, before
from toolgate.store import calls_sqlite, statements
from toolgate.store.approvals import TableApprovals
from toolgate.store.journal import TableJournal
from toolgate.store.records import tool_execution_log as log
from toolgate.testing.approvals import MemoryApprovals
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("S2", "S3", "S6")
ENDS = (State.SUCCEEDED, State.FAILED, State.UNKNOWN)
HOUR = 3_600 * 10**9
# Each with the test that holds it against the machine. One that is new has none yet.
UPDATES = {
    "approvals.py": 1,  # a person says no, or nobody comes: below
    "calls_sqlite.py": 1,  # an end: below
    "statements.py": 1,  # the same on PostgreSQL: below
    "ledger.py": 1,  # a lease is prolonged, and nothing else: below
    "claiming.py": 2,  # where the machine has been asked; and a key is set free, and nothing else
}


@pytest.fixture(params=(TWIN, FILE, POSTGRES))
async def once(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Once]:
    async with opened(request, tmp_path) as found:
        yield found


def in_state(state: State, name: str = "k") -> Entry:
    return keyed(key=name, state=state, fence=1, tried=True, lease_ns=FAR_NS)


def allowed(call: Entry, event: Event) -> bool:
    return step(call.slot, event, clock.unix_ns()).action is not Action.REFUSE


@pytest.mark.parametrize("state", State)
async def test_a_store_takes_an_end_exactly_where_the_machine_does(
    once: Once, state: State
) -> None:
    journal = once.journal()
    for end in ENDS:
        call = in_state(state, end.value)
        await once.put(call)
        ended = await journal.end(over(call, end))
        assert ended.accepted is allowed(call, Finish(fence=1, state=end)), end
        assert await state_of(once, call) is (end if ended.accepted else state)


@pytest.mark.parametrize("state", State)
async def test_a_lease_is_prolonged_exactly_where_the_machine_does(
    once: Once, state: State
) -> None:
    journal = once.journal()
    assert isinstance(journal, (TableJournal, MemoryJournal))
    owner = journal.owner
    call = replace(in_state(state), owner=owner.name)
    await once.put(call)
    owner.running.add(call.call_id, clock.monotonic_ns())
    await once.ledger(journal).renew()
    found = await journal.find("acme", call.call_id)
    assert found is not None
    assert (found.lease_ns != FAR_NS) is allowed(call, Renew(1, 1))
    assert found.state is state


async def waits(once: Once, state: State, ttl_ns: int) -> tuple[Approvals, Entry]:
    """A call whose approval nobody has decided, in a state that it may have come to meanwhile."""
    call = keyed()
    kept: Approvals
    if isinstance(once, Tables):
        kept = TableApprovals(once.database)
    else:
        journal = once.journal()
        assert isinstance(journal, MemoryJournal)
        kept = MemoryApprovals(journal)
    await kept.request(approval(call), call, ttl_ns)
    found = await once.journal().find("acme", call.call_id)
    assert found is not None
    if isinstance(once, Twins):
        await once.put(replace(found, state=state))
    else:
        await once.execute(log.update().values(state=state.value))
    return kept, call


@pytest.mark.parametrize("state", State)
async def test_who_says_no_ends_exactly_what_the_machine_says(once: Once, state: State) -> None:
    kept, call = await waits(once, state, HOUR)
    asked = approval(call)
    assert await kept.decide(asked, approved=False, who="boss", why="no") is not None
    after = step(Slot(state=state, digest=""), Deny(), 1).slot
    assert await state_of(once, call) is after.state


@pytest.mark.parametrize("state", State)
async def test_time_ends_exactly_what_the_machine_says(once: Once, state: State) -> None:
    kept, call = await waits(once, state, 0)
    assert await kept.sweep() == 1
    after = step(Slot(state=state, digest="", expires_ns=1), Tick(), 1).slot
    assert await state_of(once, call) is after.state


@pytest.mark.parametrize("state", State)
def test_the_statements_of_an_end_name_the_states_before_it(state: State) -> None:
    expected = {one.value for one in before(state)}
    assert set(statements.BEFORE[state]) == expected
    for text in calls_sqlite._END[state].values():  # pyright: ignore[reportPrivateUsage]
        [named] = re.findall(r"AND state IN \((.*)\)$", text)
        assert {one.strip("'") for one in named.split(", ") if one} == expected


def test_no_other_statement_changes_a_call() -> None:
    room = Path(toolgate.store.__path__[0])
    found = Counter[str]()
    for file in room.glob("*.py"):
        text = file.read_text("utf-8")
        changes = re.findall(r"\blog\.update\(|UPDATE tool_execution_log|update\(log\b", text)
        found[file.name] += len(changes)
    assert +found == UPDATES
