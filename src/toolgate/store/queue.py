"""Queued calls in a table. Every change of one is guarded by its fence and state."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import NOBODY, Depth, Ended, Item, Kept, Stage, Taken
from toolgate.store.database import HOUSE, Database
from toolgate.store.depth import depth, open_by_tenant
from toolgate.store.fair import SENDERS, WAITERS, Fair, free, wait
from toolgate.store.first import is_first
from toolgate.store.gather import Gather
from toolgate.store.hold import Hold
from toolgate.store.moment import now_ns
from toolgate.store.prune import Prune
from toolgate.store.records import AWAY, WAITS, queue
from toolgate.store.text import storable

# What is over can be asked for this long.
_KEEP_NS = 86_400 * 1_000_000_000
# Asked before anything is locked: nearly always there is nothing to do.
_ANY_WAITS = f"SELECT 1 FROM queue WHERE {WAITS} LIMIT 1"  # noqa: S608  no value stands in it
_ANY_HELD = f"SELECT 1 FROM queue WHERE {AWAY} LIMIT 1"  # noqa: S608  nor here
_TAKEN = (
    queue.c.id,
    queue.c.call_id,
    queue.c.tenant_id,
    queue.c.tool_name,
    queue.c.message,
    queue.c.fence,
    queue.c.attempts,
    queue.c.expires_ns,
)
KEPT = (
    queue.c.call_id,
    queue.c.tenant_id,
    queue.c.tool_name,
    queue.c.agent_id,
    queue.c.user_id,
    queue.c.scope,
    queue.c.state,
    queue.c.attempts,
    queue.c.queued_ns,
    queue.c.expires_ns,
    queue.c.ended_ns,
    queue.c.output,
    queue.c.why,
)


class TableQueue:
    """The port over a database. `tells`: whether anybody reads results, and is to be told."""

    def __init__(
        self, database: Database, *, tells: bool = False, hold: Hold | None = None
    ) -> None:
        self._database = database
        self._hold = hold or Hold()
        self._told = int(not tells)
        self._fair = Fair()
        self._puts = Gather(self._put)
        self._ends = Gather(self._end)
        self._old = Prune(database, queue.c.ended_ns, _KEEP_NS, only=queue.c.ended_ns > 0)

    async def close(self) -> None:
        """Let what was begun come to its end."""
        for one in (self._puts, self._ends):
            await one.close()
        await self._old.close()

    async def put(self, item: Item) -> None:
        """With all that are put in the same moment."""
        self._hold.check()
        await self._puts.do(item)

    async def take(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Under the next fence."""
        self._old.soon()
        if self._hold.why or not await self._any_waits(but):
            return []

        def work(connection: Connection) -> list[Taken]:
            if self._hold.why:
                # The writer sees first that a file is another.
                return []
            now = now_ns(connection)
            found = free(connection, self._fair.pick(connection, most, now, but=but))
            return _taken(connection, _TAKE, {"these": found}, lease) if found else []

        return await self._database.write(work, tenant=HOUSE)

    async def claim(self, call_ids: Sequence[str], lease: float) -> Sequence[Taken]:
        """What nobody has, or had for longer than its lease."""

        def work(connection: Connection) -> list[Taken]:
            wait(connection, call_ids)
            return _taken(connection, _CLAIM, {"these": list(call_ids)}, lease)

        if not call_ids or self._hold.why:
            return []
        return await self._database.write(work, tenant=HOUSE)

    async def take_sent(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Nothing is locked where there is nobody to take turns with."""
        senders = await self._database.ask(SENDERS, tenant=HOUSE)
        tenants = {tenant for (tenant,) in senders if tenant not in but}
        if len(tenants) < (1 if but else 2):
            return []

        def work(connection: Connection) -> list[Taken]:
            found = self._fair.sent(connection, most, tenants)
            these = free(connection, found)
            return _taken(connection, _TAKE, {"these": these}, lease) if these else []

        return await self._database.write(work, tenant=HOUSE)

    async def renew(self, taken: Collection[Taken], lease: float) -> None:
        """What somebody else has by now is theirs; whoever lost it finds out at its end."""
        own = [(one.call_id, one.fence) for one in taken]

        def work(connection: Connection) -> None:
            connection.execute(
                queue.update()
                .where(
                    # By its name alone it is found at once.
                    queue.c.call_id.in_([call_id for call_id, _ in own]),
                    sa.tuple_(queue.c.call_id, queue.c.fence).in_(own),
                    queue.c.state == "taken",
                )
                .values(due_ns=now_ns(connection) + round(lease * 1e9))
            )

        if own:
            await self._database.write(work, tenant=HOUSE)

    async def end(self, ended: Ended) -> bool:
        """With all that end in the same moment; its arguments are not kept any longer."""
        return await self._ends.do(ended)

    async def back(self, taken: Taken, seconds: float, *, counts: bool = True) -> None:
        """It keeps its place in its order."""

        def work(connection: Connection) -> None:
            connection.execute(
                queue.update()
                .where(
                    queue.c.call_id == taken.call_id,
                    queue.c.fence == taken.fence,
                    queue.c.state == "taken",
                )
                .values(
                    state="waiting",
                    attempts=queue.c.attempts - int(not counts),
                    due_ns=now_ns(connection) + round(seconds * 1e9),
                )
            )

        await self._database.write(work, tenant=HOUSE)

    async def sweep(self) -> int:
        """By the database's clock."""
        if not await self._database.ask(_ANY_HELD, tenant=HOUSE):
            return 0

        def work(connection: Connection) -> int:
            return connection.execute(
                queue.update()
                .where(sa.text(AWAY), queue.c.due_ns < now_ns(connection))
                .values(state="waiting", due_ns=0)
            ).rowcount

        return await self._database.write(work, tenant=HOUSE)

    async def find(self, tenant: str, call_id: str) -> Kept | None:
        """Only by its tenant's name."""
        question = sa.select(*KEPT).where(
            queue.c.call_id == storable(call_id), queue.c.tenant_id == storable(tenant)
        )
        rows = await self._database.read(
            lambda connection: connection.execute(question).all(), tenant=tenant
        )
        return kept(rows[0]) if rows else None

    async def over(self, call_ids: Collection[str]) -> Sequence[Kept]:
        """Done or dead."""
        question = sa.select(*KEPT).where(
            queue.c.call_id.in_(list(call_ids)), queue.c.state.in_(("done", "dead"))
        )
        rows = await self._database.read(
            lambda connection: connection.execute(question).all(), tenant=HOUSE
        )
        return [kept(row) for row in rows]

    async def waiting(self) -> Mapping[str, int]:
        """How many of each tenant are not over."""
        return await self._database.read(open_by_tenant, tenant=HOUSE)

    async def depth(self) -> Depth:
        """Each counted up to a bound."""
        return await self._database.read(depth, tenant=HOUSE)

    async def _any_waits(self, but: Collection[str]) -> bool:
        if not but:
            return bool(await self._database.ask(_ANY_WAITS, tenant=HOUSE))
        found = await self._database.ask(WAITERS, tenant=HOUSE)
        return any(tenant not in but for (tenant,) in found)

    async def _put(self, items: list[Item]) -> Sequence[None]:
        def work(connection: Connection) -> None:
            now = now_ns(connection)
            connection.execute(queue.insert(), [waiting_row(item, now) for item in items])

        await self._database.write(work, tenant=HOUSE)
        return [None] * len(items)

    async def _end(self, ends: list[Ended]) -> Sequence[bool]:
        def work(connection: Connection) -> list[bool]:
            now = now_ns(connection)
            rows = connection.execute(
                sa.select(queue.c.call_id, queue.c.fence)
                .where(queue.c.call_id.in_({one.call_id for one in ends}), queue.c.state == "taken")
                .order_by(queue.c.id)
                .with_for_update()
            )
            # One call can be in it twice: of an attempt that has lost it, and of the next.
            held = {(call_id, fence) for call_id, fence in rows}
            own = [(one.call_id, one.fence) in held for one in ends]
            told = self._told
            values = [
                _ending(one, now, told) for one, is_own in zip(ends, own, strict=True) if is_own
            ]
            if values:
                connection.execute(_END, values)
            return own

        return await self._database.write(work, tenant=HOUSE)


_END = (
    queue.update()
    .where(queue.c.call_id == sa.bindparam("of"))
    .values(
        state=sa.bindparam("after"),
        attempts=queue.c.attempts - sa.bindparam("untried", type_=sa.Integer),
        # What is dead can be tried again.
        message=sa.case((sa.bindparam("why_") != "", queue.c.message), else_=b""),
        output=sa.bindparam("output_"),
        why=sa.bindparam("why_"),
        ended_ns=sa.bindparam("now"),
        told=sa.bindparam("told_"),
    )
)


def _ending(ended: Ended, now: int, told: int) -> dict[str, Any]:
    return {
        "of": ended.call_id,
        "after": "dead" if ended.why else "done",
        "untried": int(not ended.counts),
        "output_": ended.output,
        "why_": storable(ended.why),
        "now": now,
        "told_": told,
    }


# Built once: to build one takes longer than to run it.
_THESE: sa.BindParameter[Any] = sa.bindparam("these", expanding=True)
_OWNED = (
    queue.update()
    .values(
        state="taken",
        attempts=queue.c.attempts + 1,
        fence=queue.c.fence + 1,
        due_ns=sa.bindparam("until"),
    )
    .returning(*_TAKEN)
)
# What was first when it was picked may not be by now.
_TAKE = _OWNED.where(queue.c.id.in_(_THESE), is_first)
_CLAIM = _OWNED.where(
    queue.c.call_id.in_(_THESE),
    sa.or_(
        queue.c.state == "sent",
        sa.and_(queue.c.state.in_(("waiting", "taken")), queue.c.due_ns <= sa.bindparam("moment")),
    ),
    is_first,
)


def _taken(
    connection: Connection, statement: sa.Executable, values: dict[str, Any], lease: float
) -> list[Taken]:
    now = now_ns(connection)
    given = {**values, "until": now + round(lease * 1e9)}
    if statement is _CLAIM:
        given["moment"] = now
    rows = connection.execute(statement, given).all()
    return [_as_taken(row, now) for row in sorted(rows, key=lambda row: row.id)]


def _as_taken(row: Any, now: int) -> Taken:
    return Taken(
        call_id=row.call_id,
        tenant=row.tenant_id,
        tool=row.tool_name,
        message=bytes(row.message),
        fence=row.fence,
        attempts=row.attempts,
        late=row.expires_ns <= now,
    )


def waiting_row(item: Item, now: int) -> dict[str, Any]:
    """A call that waits from now on."""
    return {
        "call_id": item.call_id,
        "tenant_id": storable(item.tenant),
        "tool_name": storable(item.tool),
        "agent_id": storable(item.agent),
        "user_id": storable(item.user),
        "scope": storable(item.scope),
        "order_key": storable(item.order),
        "state": "waiting",
        "message": item.message,
        "queued_ns": now,
        "expires_ns": item.expires_ns,
        "output": b"",
    }


def kept(row: Any) -> Kept:
    """A row as it is asked about."""
    return Kept(
        call_id=row.call_id,
        tenant=row.tenant_id,
        tool=row.tool_name,
        agent=row.agent_id,
        user=row.user_id,
        scope=row.scope,
        stage=Stage(row.state),
        attempts=row.attempts,
        queued_ns=row.queued_ns,
        expires_ns=row.expires_ns,
        ended_ns=row.ended_ns,
        output=bytes(row.output),
        why=row.why,
    )
