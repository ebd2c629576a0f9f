"""A store as several processes see it: journals and ledgers of different owners on one table."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.entries import entry
from tests.store.kept import kept
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.state import State
from toolgate.store.database import Database
from toolgate.store.journal import TableJournal
from toolgate.store.ledger import TableLedger
from toolgate.store.records import approvals, audit_log, budget_leases, outbox
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, row_of
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.ledger import MemoryLedger

FAR_NS = 1 << 62
# An owner that is gone as soon as it has begun, and a key that is free as soon as it was used.
GONE: dict[str, Any] = {"lease": 0.0}
FLEETING: dict[str, Any] = {"ttl": 0.0}


def keyed(**fields: Any) -> Entry:
    """A call with a key of its own making."""
    given: dict[str, Any] = {"scope": "clerk/3/ann/turn", "key": "k1", "digest": "d1"}
    return entry(**(given | fields))


def over(begun: Entry, state: State = State.SUCCEEDED, **fields: object) -> Entry:
    """What began, as it ends."""
    return msgspec.structs.replace(begun, state=state, **fields)


class Twins:
    """In memory."""

    def __init__(self) -> None:
        self._first = MemoryJournal()
        self._approvals: dict[str, tuple[str, str, str, int]] = {}

    def journal(self, **terms: Any) -> Journal:
        return MemoryJournal(beside=self._first, approvals=self._agreed, **terms)

    def ledger(self, journal: Journal) -> Ledger:
        assert isinstance(journal, MemoryJournal)
        return MemoryLedger(journal)

    async def put(self, row: Entry) -> None:
        self._first.put(row)

    async def approve(
        self, id_: str, call_id: str, *, tenant: str = "acme", expires_ns: int = FAR_NS
    ) -> None:
        self._approvals[id_] = (tenant, call_id, "approved", expires_ns)

    async def approval(self, id_: str) -> str:
        return self._approvals[id_][2]

    async def changes(self) -> list[str] | None:
        """Nobody audits memory."""
        return None

    def _agreed(self, tenant: str, id_: str, now: int) -> tuple[str, Callable[[], None]] | None:
        whose, call_id, state, expires_ns = self._approvals.get(id_, ("", "", "", 0))
        if whose != tenant or state != "approved" or expires_ns <= now:
            return None

        def use() -> None:
            self._approvals[id_] = (whose, call_id, "used", expires_ns)

        return call_id, use


class Tables:
    """In a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def journal(self, **terms: Any) -> Journal:
        return TableJournal(self.database, **terms)

    def ledger(self, journal: Journal, *, outbox: bool = False) -> Ledger:
        assert isinstance(journal, TableJournal)
        return TableLedger(self.database, journal.owner, outbox=outbox)

    async def put(self, row: Entry) -> None:
        await self.execute(log.insert().values(dict(zip(COLUMNS, row_of(row), strict=True))))

    async def approve(
        self, id_: str, call_id: str, *, tenant: str = "acme", expires_ns: int = FAR_NS
    ) -> None:
        texts = dict.fromkeys(
            ("hash", "tool_name", "fingerprint", "agent_id", "user_id", "args", "prompt"), id_
        )
        await self.execute(
            approvals.insert().values(
                id=id_,
                tenant_id=tenant,
                call_id=call_id,
                kind="confirm",
                policy_revision="",
                state="approved",
                created_ns=1,
                expires_ns=expires_ns,
                **texts,
            )
        )

    async def approval(self, id_: str) -> str:
        found = await self.rows(sa.select(approvals.c.state).where(approvals.c.id == id_))
        return found[0][0]

    async def changes(self) -> list[str] | None:
        """What the audit says, in its order: the change, and the state in it."""
        rows = await self.rows(
            sa.select(audit_log.c.change, audit_log.c.details).order_by(audit_log.c.id)
        )
        return [f"{change} {details['state']}" for change, details in rows]

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        """The events that wait, in their order."""
        rows = await self.rows(sa.select(outbox.c.kind, outbox.c.payload).order_by(outbox.c.id))
        return [(kind, msgspec.json.decode(payload)) for kind, payload in rows]

    async def lend(self, id_: str, spent: int = 0) -> None:
        await self.execute(
            budget_leases.insert().values(
                id=id_,
                tenant_id="acme",
                metric="cost",
                period="2026-11",
                owner="me",
                granted=100,
                spent=spent,
                lease_ns=FAR_NS,
            )
        )

    async def spent(self, id_: str) -> int:
        found = await self.rows(sa.select(budget_leases.c.spent).where(budget_leases.c.id == id_))
        return found[0][0]

    async def execute(self, statement: sa.Executable) -> None:
        def work(connection: Connection) -> None:
            connection.execute(statement)

        await self.database.write(work)

    async def rows(self, asked: sa.Executable) -> Sequence[Any]:
        return await self.database.read(lambda connection: connection.execute(asked).all())


Once = Twins | Tables


async def state_of(once: Once, call: Entry) -> State:
    found = await once.journal().find(call.tenant, call.call_id)
    assert found is not None
    return found.state


async def lost_in(once: Once) -> list[Entry]:
    return list(await once.ledger(once.journal()).lost(10))


@asynccontextmanager
async def opened(request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[Once]:
    async with kept(request, folder, Twins, Tables) as once:
        yield once
