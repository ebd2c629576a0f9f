"""Whether the store is the one that was last seen here, or an older copy that was brought back.

An older copy knows nothing of what happened since: what was open in it would be done again. So how
far a store had come is remembered outside of it, in a small file (the witness) and by every process
that has it open. By two things: the last number of its audit, which only grows, and its names: it
gets one when it is made, and one more each time an operator accepts an older copy. That it is held
stands in the store itself: every node goes by it, also after a new start.
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
from toolgate.store.records import audit_log
from toolgate.store.tables import house_secrets
from toolgate.store.upsert import upsert

_log = logging.getLogger("toolgate.store")
_EVERY = 5.0
_NAME, _HELD = "store.", "held"
ACCEPTED = "store.accepted"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How far a store has come: its names, and the last number of its audit."""

    names: frozenset[str] = frozenset()
    audit: int = 0


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Why a store is held, and what was seen of it by whoever found out."""

    why: str = ""
    seen: Seen = Seen()


class _Found(NamedTuple):
    """A store as it is now."""

    seen: Seen
    held: _Held


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

    async def look(self) -> None:
        """Compare, and remember what is newer."""
        found, held = await self._database.read(_found, tenant=HOUSE)
        why = held.why or self._problem(found)
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
            found, held = _found(connection)
            details = {"seen": held.seen.audit, "found": found.audit}
            audit.put(connection, [audit.house_row(ACCEPTED, details, who=who, why=why)])
            # Those that are remembered elsewhere become names of this one, older than its newest.
            _named(connection, *((own | held.seen.names) - found.names))
            connection.execute(house_secrets.delete().where(house_secrets.c.name == _HELD))

        await self._database.write(work, tenant=HOUSE)
        await self.look()

    def _problem(self, found: Seen) -> str:
        seen = self._seen
        # A new store has nothing that could be done again.
        if seen is None or found == Seen():
            return ""
        if not seen.names <= found.names:
            return (
                "it is not the one that was last seen here, or a copy from before it was accepted"
            )
        if seen.names == found.names and found.audit < seen.audit:
            return (
                "an older copy was brought back: its audit ends with record "
                f"{found.audit:,}, and record {seen.audit:,} was seen"
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


def _found(connection: Connection) -> _Found:
    name, value = house_secrets.c.name, house_secrets.c.value
    which = name.startswith(_NAME) | (name == _HELD)
    rows = {row[0]: row[1] for row in connection.execute(sa.select(name, value).where(which))}
    held = _read_held(bytes(rows.pop(_HELD, b"{}")))
    last = connection.execute(sa.select(sa.func.max(audit_log.c.id))).scalar_one()
    names = frozenset(one.removeprefix(_NAME) for one in rows)
    return _Found(Seen(names=names, audit=last or 0), held)


def _mark(held: _Held, connection: Connection) -> None:
    upsert(connection, house_secrets, [{"name": _HELD, "value": msgspec.json.encode(held)}])


def _named(connection: Connection, *more: str) -> Seen:
    """Under one more name, beside those that are given."""
    names = (*more, secrets.token_hex(8))
    rows = [{"name": f"{_NAME}{one}", "value": b""} for one in names]
    upsert(connection, house_secrets, rows)
    return _found(connection).seen
