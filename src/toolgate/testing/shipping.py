"""The other sides of queued calls in memory: those that are dead, and those that a broker has."""

from collections.abc import Collection, Mapping, Sequence

from toolgate import clock
from toolgate.queue.queue import OPEN, Item, Kept, Stage
from toolgate.queue.shipping import MOST_WHOLE, Parcel, Poison, Untold
from toolgate.testing.queue import MemoryQueue, Row, Turns, in_order, kept


class MemoryDead:
    """The port over the rows of a queue. `expires`: seconds that one tried again may wait."""

    def __init__(self, queue: MemoryQueue, expires: float) -> None:
        self._queue = queue
        self._expires_ns = round(expires * 1e9)

    async def page(self, tenant: str, *, before: str = "", most: int = 50) -> Sequence[Kept]:
        """The newest first; of all tenants where none is named."""
        rows = self._queue.rows
        dead = [row for row in rows.values() if row.stage is Stage.DEAD]
        found = [row for row in dead if tenant in {"", row.item.tenant}]
        if before:
            last = rows[before].number if before in rows else 0
            found = [row for row in found if row.number < last]
        return [kept(row) for row in in_order(found)[::-1][:most]]

    async def again(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """Nobody keeps who wanted it."""
        del who, why
        row = self._queue.rows.get(call_id)
        if row is None or row.item.tenant != tenant or row.stage is not Stage.DEAD:
            return False
        if not tenant or not row.message:
            return False
        anew = self._queue.add(row.item)
        anew.fence = row.fence
        anew.expires_ns = clock.unix_ns() + self._expires_ns
        return True

    async def discard(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """As above."""
        del who, why
        row = self._queue.rows.get(call_id)
        if row is None or row.item.tenant != tenant or row.stage is not Stage.DEAD:
            return False
        row.stage, row.message = Stage.DONE, b""
        row.told = row.told or not row.output
        return True

    async def discard_unreadable(self, *, who: str, why: str) -> int:
        """All that are of no tenant."""
        rows = list(self._queue.rows)
        each = [await self.discard("", name, who=who, why=why) for name in rows]
        return sum(each)


class MemoryShipping:
    """The port over the rows of a queue."""

    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue
        self._turns = Turns()

    async def waits(self) -> bool:
        """Whether anything does."""
        return any(row.stage is Stage.WAITING for row in self._queue.rows.values())

    async def send(self, most: int, *, window: int, again: float) -> Sequence[Parcel]:
        """Of each tenant in turn, of one order only the first."""
        now, least = clock.unix_ns(), round(again * 1e9)
        found = self._turns.pick(self._queue.rows, most, now, window=window)
        for row in found:
            row.stage = Stage.SENT
            row.due_ns = now + max(now - row.queued_ns, least)
        return [
            Parcel(
                call_id=row.item.call_id,
                tenant=row.item.tenant,
                key=row.item.order or row.item.call_id,
                message=row.message,
            )
            for row in in_order(found)
        ]

    async def unsent(self, call_ids: Collection[str]) -> None:
        """Unless somebody has it by now."""
        for row in self._named(call_ids):
            if row.stage is Stage.SENT:
                row.stage, row.due_ns = Stage.WAITING, 0

    async def known(self, call_ids: Collection[str]) -> Mapping[str, str]:
        """Of whichever tenant."""
        return {row.item.call_id: row.item.tenant for row in self._named(call_ids)}

    async def adopt(self, items: Sequence[Item]) -> None:
        """One that is there already stays as it is."""
        for item in items:
            if item.call_id not in self._queue.rows:
                self._queue.add(item)

    async def bury(self, poison: Sequence[Poison]) -> None:
        """As rows of no tenant and no tool."""
        now = clock.unix_ns()
        dead = sum(
            row.stage is Stage.DEAD and not row.item.tenant for row in self._queue.rows.values()
        )
        for number, one in enumerate(poison, dead):
            item = Item(
                call_id=one.place,
                tenant="",
                tool="",
                agent="",
                user="",
                scope="",
                order="",
                message=one.content if number < MOST_WHOLE else b"",
                expires_ns=now,
            )
            if one.place not in self._queue.rows:
                row = self._queue.add(item)
                row.stage, row.ended_ns, row.why = Stage.DEAD, now, one.why

    async def untold(self, most: int, *, after: float) -> Sequence[Untold]:
        """The oldest first."""
        before = clock.unix_ns() - round(after * 1e9)
        found = [
            row
            for row in self._queue.rows.values()
            if row.stage not in OPEN and not row.told and row.ended_ns <= before
        ]
        return [_untold(row) for row in in_order(found)[:most]]

    async def told(self, call_ids: Collection[str]) -> None:
        """Of what is over."""
        for row in self._named(call_ids):
            row.told = row.told or row.stage not in OPEN

    def _named(self, call_ids: Collection[str]) -> list[Row]:
        rows = self._queue.rows
        return [rows[name] for name in dict.fromkeys(call_ids) if name in rows]


def _untold(row: Row) -> Untold:
    return Untold(
        call_id=row.item.call_id,
        tenant=row.item.tenant,
        tool=row.item.tool,
        stage=row.stage,
        attempts=row.attempts,
        ended_ns=row.ended_ns,
        output=row.output,
        message=row.message,
        why=row.why,
    )
