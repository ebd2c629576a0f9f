"""Seals: about once a second, what is new in the audit log is chained, a chain a tenant.

A hash over the link before, and the ids and digests of the records in their order. What is changed,
removed, moved or put between is then seen by `store.proof`.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.store.audit import digest_of
from toolgate.store.database import HOUSE, Database
from toolgate.store.records import audit_log, audit_seals

_log = logging.getLogger("toolgate.audit")
_EVERY = 1.0
# So few that nobody waits long for the writer in between.
_AT_ONCE = 2_000
_NAMED = 500
# Any number that nothing else takes: one seals at a time, on whichever node.
_LOCK = 7_046_510_231
_FIRST = ""
_NEW = "SELECT id FROM audit_log WHERE seal IS NULL ORDER BY id LIMIT 1"
_MARK = sa.text(
    "UPDATE audit_log SET seal = (SELECT max(number) FROM audit_seals "
    "WHERE audit_seals.tenant_id = audit_log.tenant_id) WHERE seal IS NULL AND id <= :last"
)
Sealed = Sequence[tuple[int, str]]


def seal_hash(before: str, tenant: str, number: int, at_ns: int, sealed: Sealed) -> str:
    """SHA-256 over the previous hash and what the seal holds: ids and digests, by id."""
    said = [before, tenant, number, at_ns, [list(one) for one in sealed]]
    raw = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


class Sealer:
    """Seals what is new, behind everyone's back."""

    def __init__(self, database: Database, every: float = _EVERY) -> None:
        self._database = database
        self._every = every
        self._task: asyncio.Task[None] | None = None
        # When the oldest record that waits was first seen to wait.
        self.behind_since_ns = 0

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._keep_sealing(), name="toolgate-seals")

    async def close(self) -> None:
        """Seal what waits, then stop; what cannot be sealed now is by whoever opens next."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._tried()

    async def seal(self) -> int:
        """All that is new; how many records that were."""
        total = 0
        # A look first: most of the time there is nothing to write.
        while await self._database.ask(_NEW, tenant=HOUSE):
            sealed = await self._database.write(_sealed, tenant=HOUSE)
            total += sealed
            if not sealed:
                break
        return total

    async def _keep_sealing(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self._tried()

    async def _tried(self) -> None:
        try:
            await self.seal()
        except Exception as error:  # noqa: BLE001  the next time may be a better one
            if not self.behind_since_ns:
                self.behind_since_ns = clock.unix_ns()
                _log.warning("the audit log could not be sealed (%s)", type(error).__name__)
        else:
            self.behind_since_ns = 0


def _sealed(connection: Connection) -> int:
    """One transaction: a seal for each tenant that has something new."""
    if connection.dialect.name == "postgresql":
        locked = sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))
        if not connection.execute(locked).scalar_one():
            return 0
    # What commits late with a smaller id stands in a later seal: only what is seen here is taken.
    fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
    column = audit_log.c
    rows = connection.execute(
        sa.select(column.id, column.tenant_id, column.digest)
        .where(column.seal.is_(None))
        .order_by(column.id)
        .limit(_AT_ONCE)
    ).all()
    for id_, tenant, digest in rows:
        fresh[tenant].append((id_, digest or _digested(connection, id_)))
    for tenant, sealed in fresh.items():
        _put(connection, tenant, sealed)
    if rows and connection.dialect.name == "sqlite":
        # All at once: nobody else writes meanwhile, so that nothing has come between them.
        connection.execute(_MARK, {"last": rows[-1][0]})
    return len(rows)


def _put(connection: Connection, tenant: str, sealed: list[tuple[int, str]]) -> None:
    column = audit_seals.c
    last = connection.execute(
        sa.select(column.number, column.hash)
        .where(column.tenant_id == tenant)
        .order_by(column.number.desc())
        .limit(1)
    ).first()
    before, number = (_FIRST, 1) if last is None else (last[1], last[0] + 1)
    now = clock.unix_ns()
    connection.execute(
        audit_seals.insert().values(
            tenant_id=tenant,
            number=number,
            at_ns=now,
            records=len(sealed),
            first_id=sealed[0][0],
            last_id=sealed[-1][0],
            hash=seal_hash(before, tenant, number, now, sealed),
        )
    )
    if connection.dialect.name == "sqlite":
        return
    for start in range(0, len(sealed), _NAMED):
        ids = [id_ for id_, _digest in sealed[start : start + _NAMED]]
        connection.execute(audit_log.update().where(audit_log.c.id.in_(ids)).values(seal=number))


def _digested(connection: Connection, id_: int) -> str:
    """Of a record that was written before there were digests: from here on it is chained."""
    row = connection.execute(sa.select(audit_log).where(audit_log.c.id == id_)).mappings().one()
    digest = digest_of({name: row[name] for name in row})
    connection.execute(audit_log.update().where(audit_log.c.id == id_).values(digest=digest))
    return digest
