"""Whether the store is the one that was last seen here, or an older copy that was brought back.

An older copy knows nothing of what happened since: what was open in it would be done again. So how
far a store had come is remembered outside of it, in a small file (the witness) and by every process
that has it open. By the last record of its audit, which is never changed: its number, and the
digest of what it says, since an older copy that is busy soon has records of the same numbers. And
by its names: it gets one when it is made, and one more each time an operator accepts an older copy.
That it is held stands in the store itself: every node goes by it, also after a new start.
"""

import asyncio
import logging
import os
import secrets
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.errors import StoreError
from toolgate.store import audit
from toolgate.store.database import HOUSE, Database
from toolgate.store.hold import Hold
from toolgate.store.readers import driver_of
from toolgate.store.records import audit_log
from toolgate.store.sqlite import Sqlite
from toolgate.store.tables import house_secrets
from toolgate.store.upsert import upsert

_log = logging.getLogger("toolgate.store")
_EVERY = 1.0
_NAME, _HELD = "store.", "held"
ACCEPTED = "store.accepted"
_THEN = "SELECT digest FROM audit_log WHERE id = ?"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How far a store has come: its names, and the last record of its audit."""

    names: frozenset[str] = frozenset()
    audit: int = 0
    # Empty where an older version wrote the record, or remembered it.
    digest: str = ""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Why a store is held, and what was seen of it by whoever found out."""

    why: str = ""
    seen: Seen = Seen()


class _Found(NamedTuple):
    """A store as it is now; `then`: the digest of the record that was the last one seen."""

    seen: Seen
    held: _Held
    then: str


_read = msgspec.json.Decoder(Seen).decode
_read_held = msgspec.json.Decoder(_Held).decode


class Lineage:
    """Looks now and then, and holds the store where it is not what it was."""

    def __init__(self, database: Database, witness: Path | None, hold: Hold) -> None:
        """`witness`: the file that remembers; without one, only what was seen since the start."""
        self._database = database
        self._witness = witness
        self._hold = hold
        self._seen = None if witness is None else _remembered(witness)
        self._is_kept = True
        if isinstance(database, Sqlite):
            database.watch(self._look_again)

    async def look(self) -> None:
        """Compare, and remember what is newer."""
        before = self._hold.why
        found, held, then = await self._database.read(self._found, tenant=HOUSE)
        why = held.why or self._problem(found, then)
        if self._hold.why != before:
            # By the writer, meanwhile, who saw it later than this.
            return
        if why and not self._hold.why:
            _log.error("the store is in quarantine: %s; see toolgate store show", why)
        if self._hold.why and not why:
            _log.warning("the store was accepted as it is: work goes on")
        self._hold.why = why
        if why:
            if not held.why:
                mark = _Held(why=why, seen=self._seen or Seen())
                await self._database.write(partial(_mark, mark), tenant=HOUSE)
            return
        if not found.names:
            found = await self._database.write(_named, tenant=HOUSE)
        if found != self._seen:
            self._seen = found
            await asyncio.to_thread(self._keep, found)

    async def keep_looking(self) -> None:
        """Until the house closes: a server can be brought back while we run."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.look()
            except StoreError:
                # It is away; what is there when it is back is looked at then.
                continue

    async def close(self) -> None:
        """What was written last is remembered, too."""
        try:
            await self.look()
        except StoreError as error:
            _log.info("how far the store has come is not remembered (%s)", error.code)

    async def accept(self, who: str, why: str) -> None:
        """An operator takes the store as it is, on every node; it stands in the audit."""
        own = frozenset[str]() if self._seen is None else self._seen.names

        def work(connection: Connection) -> None:
            found, held, _ = self._found(connection)
            details = {"seen": held.seen.audit, "found": found.audit}
            audit.put(connection, [audit.house_row(ACCEPTED, details, who=who, why=why)])
            # Those that are remembered elsewhere become names of this one, older than its newest.
            _named(connection, *((own | held.seen.names) - found.names))
            connection.execute(house_secrets.delete().where(house_secrets.c.name == _HELD))

        await self._database.write(work, tenant=HOUSE)
        await self.look()

    def _found(self, connection: Connection) -> _Found:
        return _found(connection, 0 if self._seen is None else self._seen.audit)

    def _look_again(self, connection: Connection) -> None:
        """Before anything is claimed in a file that somebody else has written to."""
        seen = self._seen
        if seen is None or self._hold.why:
            return
        row = driver_of(connection).execute(_THEN, (seen.audit,)).fetchone()
        if row is None or row[0] != seen.digest:
            found, held, then = self._found(connection)
            self._hold.why = held.why or self._problem(found, then)

    def _problem(self, found: Seen, then: str) -> str:
        seen = self._seen
        # A new store has nothing that could be done again.
        if seen is None or found == Seen():
            return ""
        if not seen.names <= found.names:
            return (
                "it is not the one that was last seen here, or a copy from before it was accepted"
            )
        if seen.names != found.names:
            return ""
        if found.audit < seen.audit:
            return (
                "an older copy was brought back: its audit ends with record "
                f"{found.audit:,}, and record {seen.audit:,} was seen"
            )
        if seen.digest and then != seen.digest:
            return (
                "an older copy was brought back, and has been worked on: record "
                f"{seen.audit:,} of its audit is not the one that was seen"
            )
        return ""

    def _keep(self, seen: Seen) -> None:
        if self._witness is None:
            return
        beside = self._witness.with_name(f"{self._witness.name}.{os.getpid()}")
        try:
            with open(beside, "wb", opener=_private) as file:
                file.write(msgspec.json.encode(seen, order="deterministic"))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._witness)
        except OSError as error:
            if self._is_kept:
                self._is_kept = False
                _log.warning(
                    "how far the store has come cannot be remembered (%s): set [store] witness to "
                    "a file that can be written",
                    error.strerror,
                )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _remembered(witness: Path) -> Seen | None:
    try:
        return _read(witness.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        _log.warning("what was seen of the store cannot be read, and is written anew")
        return None


def _found(connection: Connection, last_seen: int = 0) -> _Found:
    name, value = house_secrets.c.name, house_secrets.c.value
    which = name.startswith(_NAME) | (name == _HELD)
    rows = {row[0]: row[1] for row in connection.execute(sa.select(name, value).where(which))}
    held = _read_held(bytes(rows.pop(_HELD, b"{}")))
    id_, digest = audit_log.c.id, audit_log.c.digest
    newest = sa.select(id_, digest).order_by(id_.desc()).limit(1)
    last = connection.execute(newest).first() or (0, "")
    then = connection.execute(sa.select(digest).where(id_ == last_seen)).scalar_one_or_none()
    names = frozenset(one.removeprefix(_NAME) for one in rows)
    return _Found(Seen(names=names, audit=last[0], digest=last[1]), held, then or "")


def _mark(held: _Held, connection: Connection) -> None:
    upsert(connection, house_secrets, [{"name": _HELD, "value": msgspec.json.encode(held)}])


def _named(connection: Connection, *more: str) -> Seen:
    """Under one more name, beside those that are given."""
    names = (*more, secrets.token_hex(8))
    rows = [{"name": f"{_NAME}{one}", "value": b""} for one in names]
    upsert(connection, house_secrets, rows)
    return _found(connection).seen
