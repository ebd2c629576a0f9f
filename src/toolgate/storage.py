"""The store that the settings name: reached, brought up to date, looked at before it is used."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from toolgate.errors import SettingsInvalid
from toolgate.premises import witness_of
from toolgate.settings.settings import Settings
from toolgate.store.database import HOUSE, Database, Statements
from toolgate.store.hold import Hold
from toolgate.store.lineage import Lineage
from toolgate.store.migrate import migrate, state
from toolgate.store.row_security import standing
from toolgate.store.sqlite import Sqlite
from toolgate.store.trail import TableTrail
from toolgate.tenancy.audit import Trail

_log = logging.getLogger("toolgate.store")
_FILE = "sqlite:///"
MEMORY = "sqlite:///:memory:"
_PLACES = (
    "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
    "current_setting('max_connections')::int"
)
_NOT = "row security is not in force"


def connect(settings: Settings, url: str = "") -> Database:
    """The database that the settings name, or one beside it."""
    url = url or settings.store.url
    if not url.startswith(_FILE):
        return _postgres(url, settings.store.connections)
    path = url.removeprefix(_FILE)
    return Sqlite(None if path == ":memory:" else settings.path(path))


async def store_state(settings: Settings) -> Literal["current", "empty", "old"]:
    """How the store is, without making or changing anything."""
    path = settings.store.url.removeprefix(_FILE)
    if path != settings.store.url and (path == ":memory:" or not settings.path(path).exists()):
        return "empty"
    database = connect(settings)
    try:
        return await state(database)
    finally:
        await database.close()


async def prepare(settings: Settings, database: Database) -> None:
    """Make or upgrade its tables, by their owner where there is one; then see who keeps tenants
    apart.
    """
    if settings.store.migrate_url:
        await upgrade(settings)
    await migrate(database)
    fine, says = await row_security(settings, database)
    if not fine:
        raise SettingsInvalid([f"store.row_security: {says}"])
    if says.startswith(_NOT):
        _log.warning("%s", says)


async def looked_at(settings: Settings, database: Database, hold: Hold) -> Lineage:
    """Held where it is not the store that was last seen; who closes it remembers how it is then."""
    found = Lineage(database, witness_of(settings), hold)
    await found.look()
    return found


@asynccontextmanager
async def audit_trail(settings: Settings) -> AsyncGenerator[Trail]:
    """The audit alone: what is proven does not rest on tools or policies that can be read."""
    database = connect(settings)
    try:
        await prepare(settings, database)
        yield TableTrail(database)
    finally:
        await database.close()


@asynccontextmanager
async def lineage(settings: Settings) -> AsyncGenerator[tuple[Lineage, Hold]]:
    """The store alone, and whether it is held."""
    database = connect(settings)
    try:
        await prepare(settings, database)
        hold = Hold()
        yield await looked_at(settings, database, hold), hold
    finally:
        await database.close()


async def places(settings: Settings) -> tuple[int, int]:
    """How many connections PostgreSQL has open, and how many it takes at the most."""
    database = connect(settings)
    try:
        [[used, most]] = await database.ask(_PLACES, tenant=HOUSE)
        return int(used), int(most)
    finally:
        await database.close()


async def upgrade(settings: Settings) -> None:
    """Make or upgrade the tables, and nothing else."""
    owner = connect(settings, settings.store.migrate_url)
    try:
        await migrate(owner)
    finally:
        await owner.close()


async def row_security(settings: Settings, database: Database) -> tuple[bool, str]:
    """Whether the second wall between tenants is as the settings want it, and how it is."""
    optional = settings.store.row_security == "warn"
    if not isinstance(database, Statements):
        return optional, "a file of SQLite has no row security; PostgreSQL has"
    problem, more = await standing(database)
    if problem:
        return optional, f"{_NOT}: {problem}"
    return True, f"row security is in force{f', but {more}' if more else ''}"


def _postgres(url: str, connections: int) -> Database:
    try:
        from toolgate.store.postgres import Postgres  # noqa: PLC0415  its driver is an extra
    except ImportError:
        raise SettingsInvalid(
            ["store.url: PostgreSQL needs its driver: make install EXTRAS=postgres"]
        ) from None
    return Postgres(url, connections)
