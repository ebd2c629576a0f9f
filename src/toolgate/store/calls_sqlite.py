"""Claims and ends on SQLite: a few fixed statements on the driver itself, in the writer's turn.

What waits at the same time is written by the same statements. Each of them lets go of the
interpreter and has to get hold of it again, which takes longer than a row.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, count, repeat
from sqlite3 import Connection as Driver
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from toolgate import clock
from toolgate.crash import crash_here
from toolgate.errors import ToolgateError
from toolgate.ledger.budget import FULL
from toolgate.ledger.claims import is_ended, kept_ns
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State, before
from toolgate.store import revision
from toolgate.store.claiming import Terms, by_id, claim, started
from toolgate.store.database import Database
from toolgate.store.ending import ENDING, ending_values, guard_values, window_ns
from toolgate.store.hold import Hold
from toolgate.store.readers import driver_of
from toolgate.store.rows import COLUMNS, row_of
from toolgate.store.sqlite import Sqlite, whole
from toolgate.store.told import AUDIT, OUTBOX, audit_values, outbox_values

T = TypeVar("T")
_Row = Sequence[Any]
# Where the id of its call stands among the values of an end.
_CALL = -3
# So many rows to a statement, where there are as many: each number is a statement of its own.
_SIZES = (64, 16, 4, 1)
# As `ledger.budget.added`.
_CHARGE = (
    f"UPDATE budget_leases SET spent = CASE WHEN spent >= {FULL} THEN {FULL} "  # noqa: S608
    f"ELSE min(spent + ?, {FULL}) END WHERE id = ?"
)


def _marks(columns: int, rows: int = 1) -> str:
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)


def _inserts(table: str, columns: tuple[str, ...], otherwise: str = "") -> dict[int, str]:
    return {
        size: f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608  names of our own
        f"VALUES {_marks(len(columns), size)}{otherwise}"
        for size in _SIZES
    }


def _ends(state: State) -> dict[int, str]:
    """By the values of an `_End`."""
    names = (*ENDING, "ended_ns", "expires_ns", "undo_until_ns")
    guard = ("call_id", "tenant_id", "fence")
    states = ", ".join(repr(one.value) for one in sorted(before(state)))

    def statement(values: Iterator[str], given: str) -> str:
        sets = ", ".join(f"{name} = {next(values)}" for name in names)
        where = " AND ".join(f"{name} = {next(values)}" for name in guard)
        return (
            f"UPDATE tool_execution_log SET {sets}, lease_ns = NULL {given}"  # noqa: S608
            f"WHERE {where} AND state IN ({states})"
        )

    columns = len(names) + len(guard)
    alone = statement(repeat("?"), "")
    together = {
        size: statement(
            (f"given.column{at}" for at in count(1)),
            f"FROM (VALUES {_marks(columns, size)}) AS given ",
        )
        for size in _SIZES
    }
    return together | {1: alone}


_CLAIM = _inserts("tool_execution_log", COLUMNS, " ON CONFLICT DO NOTHING")
_AUDIT = _inserts("audit_log", AUDIT)
_OUTBOX = _inserts("outbox", OUTBOX)
_END = {state: _ends(state) for state in State}
# Asked for beside the update: RETURNING takes three times as long.
_WANTED = {
    size: "SELECT call_id, wanted_by FROM tool_execution_log "  # noqa: S608
    f"WHERE call_id IN {_marks(size)} AND wanted_by <> ''"
    for size in _SIZES
}


class _Begin(NamedTuple):
    entry: Entry
    terms: Terms
    hold: Hold
    # Empty where the rows that are there have to be looked at in any case.
    row: _Row = ()
    told: _Row | None = None


class _End(NamedTuple):
    entry: Entry
    values: _Row
    audit: _Row
    told: _Row | None
    again: bool


class _Short(Exception):
    """Not all of them were as expected: each has to be looked at."""


class SqliteCalls:
    """The two writes around a side effect. What can be made ready is, before the writer's turn."""

    def __init__(self, database: Database, owner: Owner, hold: Hold, *, outbox: bool) -> None:
        self._database = database
        self._owner = owner
        self._hold = hold
        self._outbox = outbox

    async def begin(self, entry: Entry, *, may_start: bool, basis: Basis | None) -> Begun:
        """One insert that can conflict; only then the rows are looked at."""
        terms = Terms(self._owner, self._outbox, may_start, basis=basis)
        if not may_start or entry.approval:
            return await self._write(_Begin(entry, terms, self._hold))
        now = clock.unix_ns()
        new = started(entry, self._owner, now)
        told = outbox_values(new, now) if self._outbox else None
        return await self._write(_Begin(new, terms, self._hold, row_of(new), told))

    async def end(self, entry: Entry, *, again: bool) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""
        now = clock.unix_ns()
        kept, window = kept_ns(entry, self._owner.ttl_ns), window_ns(entry)
        values = (
            *ending_values(entry),
            now,
            None if kept is None else now + kept,
            None if window is None else now + window,
            *guard_values(entry),
        )
        told = outbox_values(entry, now) if self._outbox else None
        return await self._write(_End(entry, values, audit_values(entry, now), told, again))

    def _write(self, one: _Begin | _End) -> Awaitable[Any]:
        if isinstance(self._database, Sqlite):
            return self._database.write_together(_written, one)
        return self._database.write(
            lambda connection: _only(_written(connection, [one])), tenant=one.entry.tenant
        )


def _only(answers: Sequence[Any]) -> Any:
    (answer,) = answers
    if isinstance(answer, ToolgateError):
        raise answer
    return answer


def _written(connection: Connection, these: Sequence[_Begin | _End]) -> list[Any]:
    """An answer for each: what came of it, or an error, which has left nothing behind."""
    begins = [one for one in these if type(one) is _Begin]
    ends = [one for one in these if type(one) is _End]
    # In this order: who went away while its claim was made has sent its end after it.
    begun = iter(_begun(connection, begins) if begins else ())
    ended = iter(_ended(connection, ends) if ends else ())
    return [next(begun) if type(one) is _Begin else next(ended) for one in these]


def _begun(connection: Connection, begins: Sequence[_Begin]) -> list[Begun | ToolgateError]:
    if begins[0].hold.why:
        # Since they asked: the writer sees first that the file is another.
        return [one.hold.refusal() for one in begins]
    driver = driver_of(connection)
    newest = cache(partial(revision.newest_seen, driver))

    def is_fit(one: _Begin) -> bool:
        """It can be new, and is not out of date."""
        basis = one.terms.basis
        return bool(one.row) and (basis is None or newest(basis.parts) <= basis.revision)

    fit = [is_fit(one) for one in begins]
    plain = [one for one, fits in zip(begins, fit, strict=True) if fits]

    def all_new(_: Connection) -> None:
        if _put(driver, _CLAIM, [one.row for one in plain]) != len(plain):
            raise _Short

    together = len(plain) > 1 and _went_well(connection, all_new)
    answers: list[Begun | ToolgateError] = []
    for one, fits in zip(begins, fit, strict=True):
        if fits and (together or _put(driver, _CLAIM, [one.row])):
            crash_here("CP4")
            if one.told is not None:
                _put(driver, _OUTBOX, [one.told])
            answers.append(Begun(one.entry, Action.RUN))
        else:
            answers.append(_looked_at(connection, one))
    return answers


def _looked_at(connection: Connection, one: _Begin) -> Begun | ToolgateError:
    try:
        # It may write before it finds that it cannot go on.
        return whole(connection, lambda connection: claim(connection, one.entry, one.terms))
    except ToolgateError as error:
        return error


def _ended(connection: Connection, ends: Sequence[_End]) -> list[Ended]:
    by_state: dict[State, list[_End]] = defaultdict(list)
    for one in ends:
        by_state[one.entry.state].append(one)
    accepted: dict[int, Ended] = {}
    for state, some in by_state.items():
        accepted |= _taken(connection, _END[state], some)
    return [accepted.get(id(one)) or _ended_before(connection, one) for one in ends]


def _taken(
    connection: Connection, statements: dict[int, str], ends: Sequence[_End]
) -> dict[int, Ended]:
    """Those that were still their owner's. There may be two of one call."""
    driver = driver_of(connection)

    def all_open(_: Connection) -> None:
        if _put(driver, statements, [one.values for one in ends]) != len(ends):
            raise _Short

    if not (len(ends) > 1 and _went_well(connection, all_open)):
        ends = [one for one in ends if _put(driver, statements, [one.values])]
    ids = [one.values[_CALL] for one in ends]
    wanted = {
        call_id: turn
        for statement, some in _parts(_WANTED, ids)
        for call_id, turn in driver.execute(statement, some)
    }
    crash_here("CP7")
    _put(driver, _AUDIT, [one.audit for one in ends])
    _put(driver, _OUTBOX, [one.told for one in ends if one.told is not None])
    for one in ends:
        for lease, amount in one.entry.charges:
            driver.execute(_CHARGE, (amount, lease))
    return {
        id(one): Ended(accepted=True, wanted_by=wanted.get(call_id, ""))
        for one, call_id in zip(ends, ids, strict=True)
    }


def _ended_before(connection: Connection, one: _End) -> Ended:
    """Whoever sent it the first time did not wait for the answer."""
    entry = one.entry
    found = by_id(connection, entry.tenant, entry.call_id) if one.again else None
    if found is None or not is_ended(found, entry):
        return Ended(accepted=False)
    return Ended(accepted=True, wanted_by=found.wanted_by)


def _went_well(connection: Connection, work: Callable[[Connection], None]) -> bool:
    """Whether all of it is done; else nothing is."""
    try:
        whole(connection, work)
    except _Short:
        return False
    return True


def _put(driver: Driver, statements: dict[int, str], rows: Sequence[_Row]) -> int:
    """How many rows were written."""
    return sum(
        driver.execute(statement, list(chain.from_iterable(some))).rowcount
        for statement, some in _parts(statements, rows)
    )


def _parts(statements: dict[int, str], these: Sequence[T]) -> Iterator[tuple[str, Sequence[T]]]:
    """As few statements as there are for so many."""
    at = 0
    for size in _SIZES:
        while at + size <= len(these):
            yield statements[size], these[at : at + size]
            at += size
