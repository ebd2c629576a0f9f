"""Decisions on record: one suite for the twin and every table; then what only a table does."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.house import until
from tests.store.entries import entry, pure
from tests.store.kept import KINDS, kept
from toolgate import clock
from toolgate.caller import Action
from toolgate.errors import StoreUnavailable
from toolgate.gate.decision import Decision, Decisions
from toolgate.ledger.journal import Journal
from toolgate.store.database import Database
from toolgate.store.decisions import TableDecisions
from toolgate.store.journal import TableJournal
from toolgate.store.records import call_pages
from toolgate.store.tables import decisions as table
from toolgate.testing.decisions import MemoryDecisions

pytestmark = pytest.mark.req("G6", "O2")
T = TypeVar("T")
MINUTE = 60 * 1_000_000_000
DAY = 24 * 60 * MINUTE
NOW = clock.unix_ns()
ODD = "NUL \0, half a pair \udcff, é, 🙂, ' \" -- \n\u2028"


def decision(**fields: Any) -> Decision:
    values: dict[str, Any] = {
        "id": "d1",
        "at_ns": NOW,
        "tenant": "acme",
        "tool": "mail.send",
        "action": Action.REQUEST,
        "allowed": True,
        "phase": "policy",
        "rule": "allow",
        "reason": "the policy allows it",
        "policy_revision": "p1",
        "input": b'{"tool":"mail.send"}',
    }
    return Decision(**(values | fields))


def first(given: Decision) -> Decision:
    """As it is read back when it was made once."""
    return msgspec.structs.replace(given, first_ns=given.at_ns)


@pytest.fixture(params=KINDS)
async def decisions(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Decisions]:
    async with kept(request, tmp_path, MemoryDecisions, TableDecisions) as made:
        yield made


async def test_every_field_comes_back_as_it_was(decisions: Decisions) -> None:
    made = [
        decision(id=f"d{number}", at_ns=NOW + number, action=action, allowed=allowed, observed=seen)
        for number, (action, allowed, seen) in enumerate(
            (action, allowed, seen)
            for action in Action
            for allowed in (True, False)
            for seen in (True, False)
        )
    ]
    for one in made:
        decisions.note(one)
    assert list(await decisions.since(0)) == [first(one) for one in made]


async def test_the_same_decision_is_kept_once_with_its_first_and_last_time(
    decisions: Decisions,
) -> None:
    decisions.note(decision())
    await decisions.since(0)
    decisions.note(decision(at_ns=NOW + 2 * MINUTE, reason="said otherwise"))
    [found] = await decisions.since(0)
    assert (found.first_ns, found.at_ns) == (NOW, NOW + 2 * MINUTE)
    assert found.reason == "the policy allows it", "only the time changes"


async def test_since_looks_at_the_last_time_and_tells_the_oldest_first(
    decisions: Decisions,
) -> None:
    for number in (3, 1, 2):
        decisions.note(decision(id=f"d{number}", at_ns=NOW + number))
    assert [one.id for one in await decisions.since(NOW + 2)] == ["d2", "d3"]
    assert [one.id for one in await decisions.since(NOW + 4)] == []
    decisions.note(decision(id="d1", at_ns=NOW + 2 * MINUTE))
    assert [one.id for one in await decisions.since(NOW + 2)] == ["d2", "d3", "d1"]


@pytest.mark.req("V5")
async def test_a_few_at_a_time_are_all_of_them_each_once(decisions: Decisions) -> None:
    for number in range(7):
        # Some were made in the same moment.
        decisions.note(decision(id=f"d{number}", at_ns=NOW + number // 3))
    every = [one.id for one in await decisions.since(NOW)]
    found: list[str] = []
    after: tuple[int, str] | None = None
    while some := await decisions.since(NOW, after=after, most=2):
        found += [one.id for one in some]
        after = (some[-1].at_ns, some[-1].id)
    assert (found, len(every)) == (every, 7)
    assert list(await decisions.since(NOW + 2, after=(NOW, "d0"), most=9)) == list(
        await decisions.since(NOW + 2)
    )


@pytest.mark.req("V3")
async def test_a_tenants_decisions_can_be_asked_for_alone(decisions: Decisions) -> None:
    for number, tenant in enumerate(("acme", "globex", "acme")):
        decisions.note(decision(id=f"d{number}", tenant=tenant, at_ns=NOW + number))
    assert [one.id for one in await decisions.since(0, tenant="acme")] == ["d0", "d2"]
    assert [one.id for one in await decisions.since(0, tenant="globex")] == ["d1"]
    for nobody in ("Acme", "acme ", "ac%", "_cme"):
        assert list(await decisions.since(0, tenant=nobody)) == []
    assert len(await decisions.since(0)) == 3


async def test_odd_text_keeps_nothing_from_being_recorded(decisions: Decisions) -> None:
    decisions.note(decision(id="odd", reason=ODD, rule=ODD, input=b'{"a":"\xff\\u0000"}'))
    decisions.note(decision(id="plain"))
    found = await decisions.since(0)
    assert [one.id for one in found] == ["odd", "plain"]
    assert "é, 🙂, ' \" -- \n\u2028" in found[0].reason


async def test_a_call_on_record_names_the_decision_that_let_it_pass(journal: Journal) -> None:
    await journal.begin(entry(decision="d1"))
    journal.note(pure(decision="d2"))
    assert [one.decision for one in await journal.entries("acme")] == ["d2", "d1"]


async def test_pages_from_before_calls_named_decisions_can_be_read(database: Database) -> None:
    journal = TableJournal(database)
    journal.note(pure())
    await journal.drain()

    def as_before(connection: Connection) -> None:
        # As far as calls were written then: up to the digest of their arguments.
        fields = msgspec.structs.astuple(pure())[:18]
        page = msgspec.msgpack.encode([fields])
        connection.execute(call_pages.update().values(entries=page))

    await database.write(as_before)
    assert [one.decision for one in await journal.entries("acme")] == [""]


# What only a table does.


class Counting:
    """A database that counts its writes, and refuses while it is told to."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.writes = 0
        self.refuses = False

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        return await self._inner.read(work, tenant=tenant)

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        return await self._inner.ask(question, values, tenant=tenant)

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        self.writes += 1
        if self.refuses:
            raise StoreUnavailable("refused")
        return await self._inner.write(work, tenant=tenant)

    async def close(self) -> None:
        await self._inner.close()


def on_disk(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


async def test_within_a_minute_the_same_decision_is_not_written_again(database: Database) -> None:
    counting = Counting(database)
    kept_there = TableDecisions(counting)
    kept_there.note(decision())
    await kept_there.drain()
    await kept_there.settle()
    before = counting.writes
    for later in (0, 1, MINUTE - 1):
        kept_there.note(decision(at_ns=NOW + later))
    await kept_there.drain()
    assert counting.writes == before
    kept_there.note(decision(at_ns=NOW + MINUTE))
    await kept_there.drain()
    assert counting.writes == before + 1
    kept_there.note(decision(at_ns=NOW))
    await kept_there.drain()
    assert counting.writes == before + 2, "a clock that was set back does not silence it"


async def test_what_is_noted_is_written_without_anyone_asking(database: Database) -> None:
    kept_there = TableDecisions(database)
    kept_there.start()
    kept_there.note(decision())
    while await database.read(on_disk) < 1:
        pass
    await kept_there.close()


async def test_a_store_that_is_away_fails_no_decision_and_gets_them_later(
    database: Database,
) -> None:
    counting = Counting(database)
    kept_there = TableDecisions(counting)
    counting.refuses = True
    kept_there.note(decision())
    with pytest.raises(StoreUnavailable):
        await kept_there.since(0)
    kept_there.note(decision(id="d2", at_ns=NOW + 1))
    counting.refuses = False
    assert [one.id for one in await kept_there.since(0)] == ["d1", "d2"]


async def test_when_too_much_waits_the_newest_are_dropped_but_refusals_last(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    counting = Counting(database)
    counting.refuses = True
    kept_there = TableDecisions(counting)
    large = b'"' + b"x" * (1024 * 1024) + b'"'
    for number in range(40):
        kept_there.note(decision(id=f"yes{number:02}", input=large))
    assert kept_there.dropped > 5
    dropped = kept_there.dropped
    kept_there.note(decision(id="no", allowed=False, input=large))
    assert kept_there.dropped == dropped, "there is still room for a refusal"
    for number in range(80):
        kept_there.note(decision(id=f"no{number:02}", allowed=False, input=large))
    assert kept_there.dropped > dropped, "but not for ever so many"
    assert caplog.text.count("too many decisions wait") == 1
    counting.refuses = False
    found = {one.id for one in await kept_there.since(0)}
    assert {"yes00", "no", "no00"} <= found
    assert "yes39" not in found
    kept_there.note(decision(id="yes39", at_ns=NOW + 1))
    assert "yes39" in {one.id for one in await kept_there.since(0)}, "one that was dropped may come"


async def test_after_the_end_a_decision_is_dropped_and_fails_nobody(database: Database) -> None:
    kept_there = TableDecisions(database)
    kept_there.start()
    await kept_there.close()
    kept_there.note(decision())
    assert kept_there.dropped == 1
    assert await database.read(on_disk) == 0


async def test_two_nodes_keep_one_row(database: Database) -> None:
    one, other = TableDecisions(database), TableDecisions(database)
    one.note(decision())
    other.note(decision(at_ns=NOW + 5))
    await one.drain()
    await other.drain()
    [found] = await one.since(0)
    assert (found.first_ns, found.at_ns) == (NOW, NOW + 5)


async def not_pruning(database: Database) -> TableDecisions:
    """One that has just pruned, so that it does not for an hour."""
    kept_there = TableDecisions(database)
    kept_there.note(decision(id="young", at_ns=NOW - 29 * DAY))
    await kept_there.drain()
    await kept_there.settle()
    return kept_there


async def test_decisions_that_nobody_made_for_a_month_go(database: Database) -> None:
    old = await not_pruning(database)
    for number in range(1_201):
        old.note(decision(id=f"old{number}", at_ns=NOW - 31 * DAY))
    old.note(decision(id="made again", at_ns=NOW - 31 * DAY))
    await old.drain()
    old.note(decision(id="made again", at_ns=NOW))
    await old.close()
    assert await database.read(on_disk) == 1_203, "without pruning they would stay"
    new = TableDecisions(database)
    new.start()
    await new.close()
    found = [(one.id, one.first_ns) for one in await new.since(0)]
    assert found == [("young", NOW - 29 * DAY), ("made again", NOW - 31 * DAY)]


async def test_a_prune_that_fails_fails_nobody(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    counting = Counting(database)
    counting.refuses = True
    kept_there = TableDecisions(counting)
    kept_there.start()
    await until(lambda: "old rows could not be deleted (StoreUnavailable)" in caplog.text)
    counting.refuses = False
    await kept_there.close()
