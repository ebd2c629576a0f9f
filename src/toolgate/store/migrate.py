"""Brings a database to this version's tables, whole or not at all.

Revisions are written GNNN. Within a generation G they only add: tables, columns with a default,
indexes. So a node of this version goes on at a store that a newer one has upgraded, and can be
started there again: old and new ones serve side by side, forward and back. What takes something
away begins the next generation, once no node of the last one is left.
"""

import asyncio
import threading
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.crash import crash_here
from toolgate.errors import StoreMismatch
from toolgate.store import records, row_security, tables
from toolgate.store.database import HOUSE, Database
from toolgate.store.metadata import metadata

# A table is in the metadata once its module is loaded.
_LOADED = (records, tables)
# What the newest migration makes.
VERSION = "0012"
# Alembic's own table.
_VERSIONS = sa.Table(
    "alembic_version",
    sa.MetaData(naming_convention={"pk": "%(table_name)s_pkc"}),
    sa.Column("version_num", sa.String(32), primary_key=True),
)
# So many revisions newer, of its own generation, a store may be: further apart nobody has tried.
MOST_NEWER = 10
# Any number does, as long as every toolgate process takes the same one.
_LOCK = 0x746F6F6C67617465
# Alembic keeps the running migration in globals: in one process, one after the other. Asked again
# and again, since PostgreSQL's migrations share the loop's thread and would block each other.
_ALONE = threading.Lock()
_TRY_AGAIN = 0.01


async def migrate(database: Database) -> None:
    """Create or upgrade the tables, then check that they are all there."""
    if not await database.read(_is_served):
        while not _ALONE.acquire(blocking=False):  # noqa: ASYNC110  another loop may hold it
            await asyncio.sleep(_TRY_AGAIN)
        upgrading = asyncio.ensure_future(database.write(_upgrade, tenant=HOUSE))
        # Not before it is over, also when nobody waits for it any more.
        upgrading.add_done_callback(lambda _: _ALONE.release())
        await asyncio.shield(upgrading)
    await database.read(_check)


async def state(database: Database) -> Literal["current", "empty", "old"]:
    """How the tables are, without touching them; a `StoreMismatch` where they are not ours."""

    def work(connection: Connection) -> Literal["current", "empty", "old"]:
        if _is_served(connection):
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


def _is_served(connection: Connection) -> bool:
    """Whether it can be used as it is: this version made it, or a newer one has added to it."""
    version = _version(connection)
    return version == VERSION or is_newer(version)


def is_newer(version: str | None) -> bool:
    """Whether a store of this version is newer than this toolgate, and good for it all the same."""
    if version is None or not version.isdecimal() or len(version) != len(VERSION):
        return False
    is_same = version[0] == VERSION[0]
    return is_same and 0 < int(version) - int(VERSION) <= MOST_NEWER


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if not _found(connection):
        _create(connection)
        return
    if _is_served(connection):
        # Another node was first.
        return
    from toolgate.store import upgrade  # noqa: PLC0415  alembic, which most starts do without

    _refuse_strangers(connection, upgrade.known_versions())
    upgrade.upgrade(connection)
    crash_here("CP14")


def _create(connection: Connection) -> None:
    """What the migrations would make, at once: a first start does not load them."""
    metadata.create_all(connection, checkfirst=False)
    row_security.enable(connection)
    crash_here("CP14")
    _VERSIONS.create(connection)
    connection.execute(_VERSIONS.insert().values(version_num=VERSION))


def _refuse_strangers(connection: Connection, known: set[str]) -> None:
    version = _version(connection)
    if version is not None and version not in known:
        raise StoreMismatch(
            f"The database is at version {version!r}, and this toolgate makes {VERSION!r}: a newer "
            f"one has used it. It goes on at what is up to {MOST_NEWER} revisions newer and begins "
            "with the same digit. Start a newer toolgate, or restore a backup from before."
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
    needed: list[str] = []
    for name, table in metadata.tables.items():
        if name in present:
            columns = {column["name"]: column for column in inspector.get_columns(name)}
            missing += [f"{name}.{c.name}" for c in table.columns if c.name not in columns]
            needed += [
                f"{name}.{other}"
                for other, column in columns.items()
                if other not in table.columns
                and not column["nullable"]
                and column["default"] is None
            ]
    if needed:
        raise StoreMismatch(
            f"The database wants {', '.join(needed)} in each row, which this toolgate does not "
            "write. Start the version that made it, or restore a backup from before."
        )
    if missing:
        raise StoreMismatch(
            f"The database says it is up to date but lacks {', '.join(missing)}: it is half "
            "migrated. Restore a backup, or point [store] url elsewhere."
        )


def _found(connection: Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())
