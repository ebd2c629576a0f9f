"""A store with a few records of every kind, sealed; on each server."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, POSTGRES, open_at
from toolgate import clock
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store import audit, pages
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, row_of
from toolgate.store.seals import Sealer
from toolgate.tenancy.audit import Actor
from toolgate.tenancy.changes import AddTenant, SetAgent, SetToolFlag


def entry(call_id: str, *, tenant: str = "acme", effect: Effect = Effect.PURE) -> Entry:
    """A call that succeeded."""
    return Entry(
        call_id,
        "mail.send",
        "sha256:00",
        effect,
        tenant,
        "clerk",
        "ann",
        "",
        "",
        "",
        CallerKind.DIRECT,
        b"{}",
        clock.unix_ns(),
        State.SUCCEEDED,
        args_hash=sha256(b"{}"),
        fence=1,
        result=b'{"status":"success"}',
    )


async def write_some(database: Database, number: int) -> None:
    """A change, an execution and a page, of two tenants."""
    directory = TableDirectory(database)
    for tenant in ("acme", "globex"):
        await directory.put((AddTenant(tenant), SetAgent(tenant, "clerk")), Actor("eva", "7"))
        done = entry(f"call_{tenant}_{number}", tenant=tenant, effect=Effect.IRREVERSIBLE)
        page = [entry(f"call_{tenant}_{number}_{one}", tenant=tenant) for one in range(3)]
        row = audit.execution_row(done, clock.unix_ns())
        kept = dict(zip(COLUMNS, row_of(done), strict=True))
        await database.write(lambda one, kept=kept: one.execute(log.insert(), kept))
        await database.write(lambda one, row=row: audit.put(one, [row]))
        await database.write(lambda one, page=page: pages.write(one, page))
    await directory.put((SetToolFlag("echo", enabled=True),))


@pytest.fixture(params=(FILE, POSTGRES))
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    """An empty store."""
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'toolgate.db'}"
        if request.param == POSTGRES:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        database = open_at(url)
        stack.push_async_callback(database.close)
        await migrate(database)
        yield database


@pytest.fixture
async def sealed(opened: Database) -> Database:
    """Three seals a tenant."""
    for number in range(3):
        await write_some(opened, number)
        await Sealer(opened).seal()
    return opened
