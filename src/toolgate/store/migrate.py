"""Brings a database to this version's tables, whole or not at all."""

import asyncio
import threading
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.crash import crash_here
from toolgate.errors import StoreMismatch
from toolgate.store import records, tables
from toolgate.store.database import Database
from toolgate.store.metadata import metadata

# A table is in the metadata once its module is loaded.
_LOADED = (records, tables)
# What the newest migration makes.
VERSION = "0007"
# Alembic's own table.
_VERSIONS = sa.Table(
    "alembic_version",
    sa.MetaData(naming_convention={"pk": "%(table_name)s_pkc"}),
    sa.Column("version_num", sa.String(32), primary_key=True),
)
# Any number does, as long as every toolgate process takes the same one.
_LOCK = 0x746F6F6C67617465
# Alembic keeps the running migration in globals: in one process, one after the other. Asked again
# and again, since PostgreSQL's migrations share the loop's thread and would block each other.
_ALONE = threading.Lock()
_TRY_AGAIN = 0.01


async def migrate(database: Database) -> None:
    """Create or upgrade the tables, then check that they are all there."""
    if not await database.read(_is_current):
        while not _ALONE.acquire(blocking=False):  # noqa: ASYNC110  another loop may hold it
            await asyncio.sleep(_TRY_AGAIN)
        upgrading = asyncio.ensure_future(database.write(_upgrade))
        # Not before it is over, also when nobody waits for it any more.
        upgrading.add_done_callback(lambda _: _ALONE.release())
        await asyncio.shield(upgrading)
    await database.read(_check)


async def state(database: Database) -> Literal["current", "empty", "old"]:
    """How the tables are, without touching them; a `StoreMismatch` where they are not ours."""

    def work(connection: Connection) -> Literal["current", "empty", "old"]:
        if _is_current(connection):
            _check(connection)
            return "current"
        from toolgate.store import upgrade  # noqa: PLC0415  alembic, which most starts do without

        _refuse_strangers(connection, upgrade.known_versions())
        return "old" if _found(connection) else "empty"

    return await database.read(work)


def _version(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    versions = (
        connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all()
    )
    if len(versions) > 1:
        raise StoreMismatch(
            f"The database says that it is at {len(versions)} versions at once: it is not "
            "toolgate's, or half migrated. Restore a backup, or point [store] url elsewhere."
        )
    return versions[0] if versions else None


def _is_current(connection: Connection) -> bool:
    return _version(connection) == VERSION


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if not _found(connection):
        _create(connection)
        return
    from toolgate.store import upgrade  # noqa: PLC0415  alembic, which most starts do without

    _refuse_strangers(connection, upgrade.known_versions())
    upgrade.upgrade(connection)
    crash_here("CP14")


def _create(connection: Connection) -> None:
    """What the migrations would make, at once: a first start does not load them."""
    metadata.create_all(connection, checkfirst=False)
    crash_here("CP14")
    _VERSIONS.create(connection)
    connection.execute(_VERSIONS.insert().values(version_num=VERSION))


def _refuse_strangers(connection: Connection, known: set[str]) -> None:
    version = _version(connection)
    if version is not None and version not in known:
        raise StoreMismatch(
            f"The database is at version {version!r}, which this toolgate does not know: "
            "a newer one has used it. Start that version, or restore a backup from before."
        )
    if version is None:
        present = sorted(_found(connection) - {"alembic_version"})
        if present:
            shown = ", ".join(present[:5]) + (" …" if len(present) > 5 else "")
            raise StoreMismatch(
                f"The database has tables ({shown}) but no version of ours: it is half "
                "migrated, or not toolgate's. Restore a backup, or use an empty one in [store] url."
            )


def _check(connection: Connection) -> None:
    """The version can say one thing and the tables another, after a restore or a hand's work."""
    inspector = sa.inspect(connection)
    present = set(inspector.get_table_names())
    missing = sorted(set(metadata.tables) - present)
    for name, table in metadata.tables.items():
        if name in present:
            columns = {column["name"] for column in inspector.get_columns(name)}
            missing += [f"{name}.{c.name}" for c in table.columns if c.name not in columns]
    if missing:
        raise StoreMismatch(
            f"The database says it is up to date but lacks {', '.join(missing)}: it is half "
            "migrated. Restore a backup, or point [store] url elsewhere."
        )


def _found(connection: Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())
