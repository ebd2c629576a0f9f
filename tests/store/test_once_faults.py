"""Whatever fails at whichever statement: it happens once or is refused, and no record is half."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.entries import entry
from tests.store.faults import failing, gone, taken_back
from tests.store.kept import kept
from tests.store.once import GONE, Tables, keyed
from tests.store.places import FILE, MEMORY, PLACES, POSTGRES
from toolgate.errors import StoreMismatch, StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State
from toolgate.store import calls_sqlite
from toolgate.store.readers import driver_of
from toolgate.store.records import tool_execution_log as log

pytestmark = pytest.mark.req("S2", "S3", "O2")
replace = msgspec.structs.replace
CHARGED = (("lease", 7),)


def no_twin() -> Tables:
    raise AssertionError("faults are a matter of tables")


@pytest.fixture(params=PLACES)
async def tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, no_twin, Tables) as found:
        yield found


@pytest.fixture(params=[POSTGRES])
async def postgres_tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, no_twin, Tables) as found:
        yield found


@pytest.fixture(params=[FILE, MEMORY])
async def sqlite_tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, no_twin, Tables) as found:
        yield found


def over(begun: Entry, **fields: Any) -> Entry:
    return replace(begun, state=State.SUCCEEDED, result=b'{"status":"success"}', **fields)


async def effects(tables: Tables) -> list[tuple[str, str]]:
    """Every row, and whether the rest of its story is there."""
    rows = await tables.rows(sa.select(log.c.call_id, log.c.state).order_by(log.c.call_id))
    return [(call_id, state) for call_id, state in rows]


class Faulty:
    """The driver, which fails at one statement: before it is done, or after."""

    def __init__(self, inner: sqlite3.Connection, fails: Callable[[], bool], when: str) -> None:
        self._inner, self._fails, self._when = inner, fails, when

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        fails = self._fails()
        if fails and self._when == "before":
            raise sqlite3.OperationalError("disk I/O error")
        done = self._inner.execute(statement, values)
        if fails:
            raise sqlite3.OperationalError("disk I/O error")
        return done


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_disk_that_fails_at_any_statement_leaves_no_half_record(
    sqlite_tables: Tables, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = sqlite_tables
    await tables.lend("lease")
    journal = tables.journal(outbox=True)
    at = -1
    numbers = count()

    def faulty(connection: Connection) -> Faulty:
        return Faulty(driver_of(connection), lambda: next(numbers) == at, when)

    monkeypatch.setattr(calls_sqlite, "driver_of", faulty)
    falls = 0
    ended = 0
    while True:
        numbers, at = count(), falls
        falls += 1
        call = entry(charges=CHARGED)
        try:
            begun = (await journal.begin(call)).entry
        except StoreUnavailable:
            assert await journal.find("acme", call.call_id) is None
            continue
        try:
            await journal.end(over(begun))
        except StoreUnavailable:
            assert await tables.spent("lease") == 7 * ended
            assert len(await tables.changes() or []) == ended
            at = -1
            assert (await journal.end(over(begun))).accepted
            ended += 1
            assert await tables.spent("lease") == 7 * ended
            assert len(await tables.changes() or []) == ended
            continue
        ended += 1
        break
    # Claim and event; outcome, wish, audit, event and charge.
    assert falls == 8
    assert len(await tables.told()) == 2 * ended


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("error", [gone, taken_back])
async def test_a_takeover_that_falls_at_any_statement_is_whole_or_nothing(
    tables: Tables, error: Callable[[], BaseException], *, after: bool
) -> None:
    found: Entry | None = None
    for falls in range(12):
        key = f"k{falls}"
        lost = keyed(key=key, recovery=Recovery.AGAIN)
        await tables.journal(**GONE).begin(lost)
        journal = tables.journal(outbox=True)
        with failing(falls, error, after=after), contextlib.suppress(StoreUnavailable):
            begun = await journal.begin(keyed(key=key))
            assert (begun.action, begun.entry.fence) == (Action.AGAIN, 2)
        found = await journal.find("acme", lost.call_id)
        assert found is not None
        told = len([1 for _, said in await tables.told() if said["call_id"] == lost.call_id])
        assert (found.fence, told) in {(1, 0), (2, 1)}
        if found.fence == 1:
            assert (await journal.begin(keyed(key=key))).action is Action.AGAIN
    # The control: in the last rounds there was no such statement, and nothing fell.
    assert found is not None
    assert found.fence == 2


@pytest.mark.req("S6")
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
async def test_an_approval_is_used_with_its_call_or_not_at_all(
    tables: Tables, *, after: bool
) -> None:
    found: Entry | None = None
    for falls in range(14):
        waited = keyed(key=f"k{falls}", state=State.WAITING)
        await tables.put(waited)
        await tables.approve(f"a{falls}", waited.call_id)
        journal = tables.journal(outbox=True)
        call = keyed(key=f"k{falls}", approval=f"a{falls}")
        with failing(falls, gone, after=after), contextlib.suppress(StoreUnavailable):
            await journal.begin(call)
        found = await journal.find("acme", waited.call_id)
        assert found is not None
        used = await tables.approval(f"a{falls}")
        assert (found.state, used) in {(State.WAITING, "approved"), (State.STARTED, "used")}
        if found.state is State.WAITING:
            assert (await journal.begin(call)).action is Action.RUN
    assert found is not None
    assert found.state is State.STARTED


Fetch = Callable[..., Any]


@contextmanager
def broken_lines(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], times: int, *, done: bool
) -> Generator[None]:
    """Statements of the raw lines fail so many times; `done`: the server has done them."""
    real: Fetch = asyncpg.Connection.fetch
    left = times

    async def fetch(self: Any, query: str, *values: Any, **named: Any) -> Any:
        nonlocal left
        if "tool_execution_log" not in query or query.startswith("SELECT") or not left:
            return await real(self, query, *values, **named)
        left -= 1
        if done:
            await real(self, query, *values, **named)
        raise error("gone")

    with monkeypatch.context() as patched:
        patched.setattr(asyncpg.Connection, "fetch", fetch)
        yield


LOST = [
    (ConnectionResetError, False),
    (ConnectionResetError, True),
    (asyncpg.ConnectionDoesNotExistError, False),
    (asyncpg.ConnectionDoesNotExistError, True),
    (asyncpg.AdminShutdownError, False),
    (asyncpg.SerializationError, False),
    (asyncpg.DeadlockDetectedError, False),
]


@pytest.mark.parametrize("key", ["", "k1"])
@pytest.mark.parametrize(("error", "done"), LOST)
async def test_an_answer_that_is_lost_once_is_found_again(
    postgres_tables: Tables,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    key: str,
    *,
    done: bool,
) -> None:
    tables = postgres_tables
    await tables.lend("lease")
    journal = tables.journal(outbox=True)
    call = keyed(key=key, charges=CHARGED)
    with broken_lines(monkeypatch, error, 1, done=done):
        begun = await journal.begin(call)
    assert (begun.action, begun.entry.call_id, begun.entry.fence) == (
        Action.RUN,
        call.call_id,
        1,
    )
    with broken_lines(monkeypatch, error, 1, done=done):
        ended = await journal.end(over(begun.entry, charges=CHARGED))
    assert ended.accepted
    assert await effects(tables) == [(call.call_id, "succeeded")]
    assert await tables.changes() == ["call.ended succeeded"]
    assert await tables.spent("lease") == 7
    assert [kind for kind, _ in await tables.told()] == [
        "side_effect.started",
        "side_effect.completed",
    ]


@pytest.mark.parametrize(("error", "done"), LOST)
async def test_a_server_that_stays_away_is_an_outage_and_nothing_runs_twice(
    postgres_tables: Tables,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    *,
    done: bool,
) -> None:
    tables = postgres_tables
    journal = tables.journal(lease=0.0)
    call = keyed()
    with broken_lines(monkeypatch, error, 9, done=done), pytest.raises(StoreUnavailable):
        await journal.begin(call)
    # Nobody runs it, and nobody keeps it alive: whoever looks after lost calls finds it.
    assert await tables.ledger(journal).renew() == 0
    lost = await tables.ledger(journal).lost(5)
    assert [one.call_id for one in lost] == ([call.call_id] if done else [])
    after = await tables.journal().begin(keyed())
    assert after.action is (Action.PARK if done else Action.RUN)


async def test_a_claim_whose_caller_leaves_is_ended_after_it_was_made(
    postgres_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = postgres_tables
    journal = tables.journal()
    real: Fetch = asyncpg.Connection.fetch
    sent, go = asyncio.Event(), asyncio.Event()

    async def fetch(self: Any, query: str, *values: Any, **named: Any) -> Any:
        if query.startswith("INSERT INTO tool_execution_log"):
            sent.set()
            await go.wait()
        return await real(self, query, *values, **named)

    monkeypatch.setattr(asyncpg.Connection, "fetch", fetch)
    call = entry()
    beginning = asyncio.ensure_future(journal.begin(call))
    await sent.wait()
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    ending = asyncio.ensure_future(journal.end(replace(call, state=State.FAILED, fence=1)))
    await asyncio.sleep(0)
    go.set()
    assert (await ending).accepted
    assert await effects(tables) == [(call.call_id, "failed")]


@pytest.mark.parametrize(
    "damage",
    [
        {"state": "dreaming"},
        {"recovery": "pray"},
        {"effect": "magical"},
        {"args": '{"to":"b'},
        {"result": '{"status":"succ'},
        {"plan": '{"tool":'},
        {"charges": '[["lease"'},
    ],
    ids=lambda damage: next(iter(damage)),
)
async def test_a_row_that_this_version_cannot_read_is_never_run(
    tables: Tables, damage: dict[str, str]
) -> None:
    journal = tables.journal()
    bad = keyed(recovery=Recovery.AGAIN)
    begun = (await tables.journal(**GONE).begin(bad)).entry
    good = (await tables.journal(**GONE).begin(entry())).entry
    await tables.execute(log.update().where(log.c.call_id == bad.call_id).values(**damage))
    ledger = tables.ledger(journal)
    for refused in (
        lambda: journal.begin(keyed()),
        lambda: journal.find("acme", bad.call_id),
        lambda: ledger.find("acme", bad.call_id),
        lambda: ledger.take(begun),
        lambda: ledger.undo(begun),
    ):
        with pytest.raises(StoreMismatch, match="Nothing ran"):
            await refused()
    assert [one.call_id for one in await ledger.lost(1)] == [good.call_id]
    assert [one.call_id for one in await journal.entries("acme")] == [good.call_id]
    rows = await tables.rows(sa.select(log.c.fence).where(log.c.call_id == bad.call_id))
    assert rows[0][0] == 1


async def test_what_is_told_is_on_record_with_what_it_tells_of(tables: Tables) -> None:
    await tables.lend("lease", spent=1)
    journal = tables.journal(outbox=True)
    ledger = tables.ledger(journal, outbox=True)
    begun = (await journal.begin(keyed())).entry
    assert not (await journal.end(over(replace(begun, fence=2), charges=CHARGED))).accepted
    assert (await tables.changes(), await tables.spent("lease")) == ([], 1)
    assert (await journal.end(over(begun, charges=CHARGED))).accepted
    assert not (await journal.end(over(begun, charges=CHARGED))).accepted
    assert await tables.spent("lease") == 8
    undoing = (await ledger.undo(begun)).entry
    await ledger.undone(undoing, done=True)
    told = await tables.told()
    assert [kind for kind, _ in told] == [
        "side_effect.started",
        "side_effect.completed",
        "side_effect.undone",
    ]
    assert {said["call_id"] for _, said in told} == {begun.call_id}
    assert len({said["id"] for _, said in told}) == 3


async def test_without_an_outbox_nothing_waits_to_be_told(tables: Tables) -> None:
    journal = tables.journal()
    await journal.end(over((await journal.begin(keyed())).entry))
    assert await tables.told() == []
