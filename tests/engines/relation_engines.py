"""The relations engines that the suites run over, and the plain model that they agree with."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from sqlalchemy import Connection

from tests.servers.postgres import Postgres as PostgresServer
from tests.servers.spicedb import SpiceDB as SpiceServer
from tests.store.lent import lent_url
from tests.store.places import FILE, POSTGRES, open_at
from toolgate import clock
from toolgate.caller import Caller
from toolgate.engines.spicedb import SpiceDB
from toolgate.gate.relations import Relations
from toolgate.store import tables
from toolgate.store.database import Database
from toolgate.store.relations import TableRelations
from toolgate.tenancy.relation import EXECUTE, MOST_MEMBERSHIPS, Relation, parse

SPICEDB = "spicedb"
ENGINES = (FILE, POSTGRES, SPICEDB)
# Long enough for a machine on which everybody works at once.
PATIENT = 20.0


class Engine(Protocol):
    """An engine, and how relations come into it."""

    relations: Relations

    async def put(
        self, tenant: str, add: Iterable[Relation] = (), remove: Iterable[Relation] = ()
    ) -> str: ...


class InTables:
    def __init__(self, database: Database) -> None:
        self.relations: Relations = TableRelations(database)
        self._database = database

    async def put(
        self, tenant: str, add: Iterable[Relation] = (), remove: Iterable[Relation] = ()
    ) -> str:
        table = tables.relations

        def work(connection: Connection) -> None:
            for one in remove:
                columns = _columns(tenant, one).items()
                connection.execute(
                    table.delete().where(*(table.c[key] == is_ for key, is_ in columns))
                )
            for one in dict.fromkeys(add):
                row = {**_columns(tenant, one), "created_at": clock.utc_now()}
                connection.execute(table.insert().values(row))

        await self._database.write(work)
        return ""


def _columns(tenant: str, one: Relation) -> dict[str, str]:
    return {
        "tenant_id": tenant,
        "kind": one.kind,
        "name": one.name,
        "relation": one.relation,
        "subject_kind": one.subject_kind,
        "subject": one.subject,
        "subject_relation": one.subject_relation,
    }


class InSpiceDB:
    def __init__(self, spicedb: SpiceDB) -> None:
        self.relations: Relations = spicedb
        self._spicedb = spicedb

    async def put(
        self, tenant: str, add: Iterable[Relation] = (), remove: Iterable[Relation] = ()
    ) -> str:
        return await self._spicedb.write(tenant, list(add), list(remove))


@asynccontextmanager
async def opened(server: SpiceServer) -> AsyncGenerator[SpiceDB]:
    """A client that has agreed on the schema."""
    spicedb = SpiceDB(f"grpc://{server.address}", server.token, PATIENT)
    try:
        await spicedb.start()
        yield spicedb
    finally:
        await spicedb.close()


@asynccontextmanager
async def open_engine(
    place: str, folder: Path, request: pytest.FixtureRequest
) -> AsyncGenerator[Engine]:
    """An engine of that kind. Tables are empty; a SpiceDB is shared: take tenants of your own."""
    async with AsyncExitStack() as stack:
        if place == SPICEDB:
            server: SpiceServer = request.getfixturevalue("spicedb")
            yield InSpiceDB(await stack.enter_async_context(opened(server)))
            return
        url = f"sqlite:///{folder / 'toolgate.db'}"
        if place == POSTGRES:
            postgres: PostgresServer = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(postgres))
        database = open_at(url)
        stack.push_async_callback(database.close)
        await database.write(lambda one: tables.relations.create(one, checkfirst=True))
        yield InTables(database)


def parsed(*texts: str) -> list[Relation]:
    return [parse(text) for text in texts]


def model(relations: Iterable[Relation], caller: Caller, tools: Sequence[str]) -> frozenset[str]:
    """Who may execute what, written as plainly as it can be."""
    relations = list(relations)
    subject = ("user", caller.user) if caller.user else ("agent", caller.agent)
    if not subject[1]:
        return frozenset()
    held = {(*subject, "")}
    for _ in range(MOST_MEMBERSHIPS):
        held |= {
            (one.kind, one.name, one.relation)
            for one in relations
            if one.kind != "tool" and (one.subject_kind, one.subject, one.subject_relation) in held
        }
    return frozenset(
        one.name
        for one in relations
        if one.kind == "tool"
        and one.relation in EXECUTE
        and (one.subject_kind, one.subject, one.subject_relation) in held
    ).intersection(tools)
