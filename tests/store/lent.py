"""A database with this version's tables and no rows, lent to one test after the other.

Making one takes PostgreSQL longer than most tests run. What a test gave back is emptied, and
dropped where anything but its rows has changed.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import gc
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4
from weakref import WeakKeyDictionary

import asyncpg

from tests.servers.postgres import Postgres as Server
from toolgate.store.metadata import metadata
from toolgate.store.migrate import migrate
from toolgate.store.postgres import Postgres

# Whoever is still connected may not write to what the next test sees.
_ALONE = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
# What is not PostgreSQL's own has a number from 16384 on.
_FIRST = "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence WHERE seqrelid >= 16384"
# Every table, column, constraint, trigger and function, and the change that wrote it last.
_SHAPE = """
SELECT md5(string_agg(one::text, ',' ORDER BY one)) FROM (
SELECT 'class', relname::text, xmin::text FROM pg_class WHERE oid >= 16384
UNION ALL SELECT 'column', attname::text, xmin::text FROM pg_attribute WHERE attrelid >= 16384
UNION ALL SELECT 'constraint', conname::text, xmin::text FROM pg_constraint WHERE oid >= 16384
UNION ALL SELECT 'trigger', tgname::text, xmin::text FROM pg_trigger WHERE oid >= 16384
UNION ALL SELECT 'function', proname::text, xmin::text FROM pg_proc WHERE oid >= 16384
UNION ALL SELECT 'schema', nspname::text, xmin::text FROM pg_namespace WHERE oid >= 16384
) AS one
"""
# Of a role that owns nothing and sees past nothing: what a runtime needs, and no more.
_GRANT = """
GRANT USAGE ON SCHEMA public TO walled;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO walled;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO walled
"""
_idle: WeakKeyDictionary[Server, list[tuple[str, str]]] = WeakKeyDictionary()


@asynccontextmanager
async def lent_url(server: Server, *, walled: bool = False) -> AsyncGenerator[str]:
    """Its url; nobody else has it until the block ends. `walled`: for the role of that name."""
    idle = _idle.setdefault(server, [])
    name, shape = idle.pop() if idle else await _made(server)
    url = _url(server, name)
    yield url.replace("//toolgate@", "//walled@") if walled else url
    _let_go()
    if await _emptied(server, name) == shape:
        idle.append((name, shape))
    else:
        await _own(server, f"DROP DATABASE {name} WITH (FORCE)")


def _let_go() -> None:
    """Lines that a test has cut on purpose are nobody's any more; no later test is told of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def _made(server: Server) -> tuple[str, str]:
    name = f"t{uuid4().hex}"
    await _own(server, f"CREATE DATABASE {name}")
    database = Postgres(_url(server, name))
    try:
        await migrate(database)
    finally:
        await database.close()
    await open_to_walled(_url(server, name))
    return name, await _emptied(server, name)


async def open_to_walled(url: str) -> None:
    """Let that role in, where tables are made."""
    owner = await asyncpg.connect(url)
    try:
        async with owner.transaction():
            # One at a time: the role belongs to the whole server.
            await owner.execute("SELECT pg_advisory_xact_lock(7046510232)")
            known = await owner.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = 'walled'")
            if not known:
                await owner.execute("CREATE ROLE walled LOGIN")
            await owner.execute(_GRANT)
    finally:
        await owner.close()


async def _emptied(server: Server, name: str) -> str:
    """How it is built, once nobody is there and nothing is in it."""
    owner = await asyncpg.connect(_url(server, name))
    try:
        await owner.execute(_ALONE)
        present = {row[0] for row in await owner.fetch("SELECT relname FROM pg_class")}
        async with owner.transaction():
            # Foreign keys look on: the order of the tables does not matter.
            await owner.execute("SET LOCAL session_replication_role = replica")
            for table in present & metadata.tables.keys():
                await owner.execute(f'DELETE FROM "{table}"')  # noqa: S608  a table of ours
            await owner.execute(_FIRST)
        return str(await owner.fetchval(_SHAPE))
    finally:
        await owner.close()


async def _own(server: Server, statement: str) -> None:
    owner = await asyncpg.connect(server.dsn)
    try:
        await owner.execute(statement)
    finally:
        await owner.close()


def _url(server: Server, name: str) -> str:
    return server.dsn.removesuffix("/postgres") + f"/{name}"
