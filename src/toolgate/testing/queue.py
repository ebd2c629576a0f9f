"""Queued calls in memory, with the rules of the table; everything is gone when it is."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.queue.queue import NOBODY, OPEN, Depth, Ended, Item, Kept, Stage, Taken

_HELD = frozenset({Stage.SENT, Stage.TAKEN})


class Row(msgspec.Struct, kw_only=True):
    """A call as the queue has it. `number` is its place, `due_ns` means what its stage says."""

    number: int
    item: Item
    message: bytes
    queued_ns: int
    expires_ns: int
    stage: Stage = Stage.WAITING
    attempts: int = 0
    fence: int = 0
    due_ns: int = 0
    ended_ns: int = 0
    output: bytes = b""
    why: str = ""
    told: bool = False


class Turns:
    """Whose turn it was."""

    def __init__(self) -> None:
        self._after = ""

    def pick(
        self,
        rows: Mapping[str, Row],
        most: int,
        now: int,
        *,
        window: int = 0,
        but: Collection[str] = NOBODY,
    ) -> list[Row]:
        """Of each tenant in turn, and of one order only the first."""
        tenants = [one for one in self._tenants(rows, Stage.WAITING) if one not in but]
        held = Counter(row.item.tenant for row in rows.values() if row.stage in _HELD)
        found: list[Row] = []
        for position, tenant in enumerate(tenants):
            if len(found) >= most:
                break
            share = -(-(most - len(found)) // (len(tenants) - position))
            if window:
                share = min(share, window - held[tenant])
            due = [row for row in rows.values() if row.item.tenant == tenant and _is_due(row, now)]
            first = [row for row in in_order(due) if is_first(row, rows.values())]
            found += first[: max(share, 0)]
            self._after = tenant
        return found

    def sent(self, rows: Mapping[str, Row], most: int, but: Collection[str] = NOBODY) -> list[Row]:
        """The same of what a broker has, where that is of several tenants."""
        tenants = [one for one in self._tenants(rows, Stage.SENT) if one not in but]
        found: list[Row] = []
        for position, tenant in enumerate(tenants if but or len(tenants) > 1 else ()):
            if len(found) >= most:
                break
            share = -(-(most - len(found)) // (len(tenants) - position))
            sent = [row for row in rows.values() if row.item.tenant == tenant]
            first = [row for row in in_order(sent) if is_first(row, rows.values())]
            found += [row for row in first if row.stage is Stage.SENT][:share]
            self._after = tenant
        return found

    def _tenants(self, rows: Mapping[str, Row], stage: Stage) -> list[str]:
        found = {row.item.tenant for row in rows.values() if row.stage is stage}
        return sorted(found, key=lambda tenant: (tenant <= self._after, tenant))


class MemoryQueue:
    """The port over a dictionary. `rows` is what a test looks at, by id."""

    def __init__(self, *, tells: bool = False) -> None:
        self.rows: dict[str, Row] = {}
        self._tells = tells
        self._turns = Turns()
        self._numbers = 0

    async def put(self, item: Item) -> None:
        """A name is good for one call."""
        if item.call_id in self.rows:
            raise StoreError(f"The queue has a call {item.call_id!r} already.")
        self.add(item)

    def add(self, item: Item) -> Row:
        """Behind all others."""
        self._numbers += 1
        row = Row(
            number=self._numbers,
            item=item,
            message=item.message,
            queued_ns=clock.unix_ns(),
            expires_ns=item.expires_ns,
        )
        self.rows[item.call_id] = row
        return row

    async def take(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Under the next fence."""
        now = clock.unix_ns()
        found = self._turns.pick(self.rows, most, now, but=but)
        return [_take(row, now, lease) for row in in_order(found)]

    async def claim(self, call_ids: Sequence[str], lease: float) -> Sequence[Taken]:
        """What nobody has, or had for longer than its lease."""
        now = clock.unix_ns()
        free = [
            row
            for row in self._named(call_ids)
            if row.stage is Stage.SENT or (row.stage in OPEN and row.due_ns <= now)
        ]
        first = [row for row in free if is_first(row, self.rows.values())]
        return [_take(row, now, lease) for row in in_order(first)]

    async def take_sent(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Of each tenant in turn."""
        now = clock.unix_ns()
        return [_take(row, now, lease) for row in in_order(self._turns.sent(self.rows, most, but))]

    async def renew(self, taken: Collection[Taken], lease: float) -> None:
        """Whoever lost one meanwhile finds out at its end."""
        for one in taken:
            row = self.rows.get(one.call_id)
            if row is not None and row.stage is Stage.TAKEN and row.fence == one.fence:
                row.due_ns = clock.unix_ns() + round(lease * 1e9)

    async def end(self, ended: Ended) -> bool:
        """Its arguments are not kept any longer, unless it is dead."""
        row = self.rows.get(ended.call_id)
        if row is None or row.stage is not Stage.TAKEN or row.fence != ended.fence:
            return False
        row.stage = Stage.DEAD if ended.why else Stage.DONE
        row.message = row.message if ended.why else b""
        row.output, row.why = ended.output, ended.why
        row.attempts -= int(not ended.counts)
        row.ended_ns = clock.unix_ns()
        row.told = not self._tells
        return True

    async def back(self, taken: Taken, seconds: float, *, counts: bool = True) -> None:
        """It keeps its place in its order."""
        row = self.rows.get(taken.call_id)
        if row is not None and row.stage is Stage.TAKEN and row.fence == taken.fence:
            row.stage = Stage.WAITING
            row.attempts -= int(not counts)
            row.due_ns = clock.unix_ns() + round(seconds * 1e9)

    async def sweep(self) -> int:
        """Put back what has not been heard of."""
        now = clock.unix_ns()
        lost = [row for row in self.rows.values() if row.stage in _HELD and row.due_ns < now]
        for row in lost:
            row.stage, row.due_ns = Stage.WAITING, 0
        return len(lost)

    async def find(self, tenant: str, call_id: str) -> Kept | None:
        """Only by its tenant's name."""
        row = self.rows.get(call_id)
        return None if row is None or row.item.tenant != tenant else kept(row)

    async def over(self, call_ids: Collection[str]) -> Sequence[Kept]:
        """Done or dead."""
        return [kept(row) for row in self._named(call_ids) if row.stage not in OPEN]

    async def waiting(self) -> Mapping[str, int]:
        """How many of each tenant are not over."""
        return Counter(row.item.tenant for row in self.rows.values() if row.stage in OPEN)

    async def depth(self) -> Depth:
        """How many there are."""
        count = Counter(row.stage for row in self.rows.values())
        now = clock.unix_ns()
        left = [row for row in self.rows.values() if row.stage in OPEN]
        lapsed = [row for row in left if row.stage is Stage.TAKEN and row.due_ns < now]
        unheld = [row for row in left if row.stage is not Stage.TAKEN] + lapsed
        return Depth(
            waiting=count[Stage.WAITING],
            sent=count[Stage.SENT],
            taken=count[Stage.TAKEN],
            dead=count[Stage.DEAD],
            lapsed=len(lapsed),
            oldest_ns=min((row.queued_ns for row in left), default=0),
            unheld_ns=min((row.queued_ns for row in unheld), default=0),
        )

    def _named(self, call_ids: Collection[str]) -> list[Row]:
        return [self.rows[name] for name in dict.fromkeys(call_ids) if name in self.rows]


def is_first(row: Row, rows: Iterable[Row]) -> bool:
    """Of those that share an order, none before it is still open, and none runs."""
    order = row.item.order
    return not order or not any(
        other.item.order == order
        and other is not row
        and (other.stage is Stage.TAKEN or (other.stage in OPEN and other.number < row.number))
        for other in rows
    )


def kept(row: Row) -> Kept:
    """A row as it is asked about."""
    item = row.item
    return Kept(
        call_id=item.call_id,
        tenant=item.tenant,
        tool=item.tool,
        agent=item.agent,
        user=item.user,
        scope=item.scope,
        stage=row.stage,
        attempts=row.attempts,
        queued_ns=row.queued_ns,
        expires_ns=row.expires_ns,
        ended_ns=row.ended_ns,
        output=row.output,
        why=row.why,
    )


def _is_due(row: Row, now: int) -> bool:
    return row.stage is Stage.WAITING and row.due_ns <= now


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By their places."""
    return sorted(rows, key=lambda row: row.number)


def _take(row: Row, now: int, lease: float) -> Taken:
    row.stage = Stage.TAKEN
    row.attempts += 1
    row.fence += 1
    row.due_ns = now + round(lease * 1e9)
    return Taken(
        call_id=row.item.call_id,
        tenant=row.item.tenant,
        tool=row.item.tool,
        message=row.message,
        fence=row.fence,
        attempts=row.attempts,
        late=row.expires_ns <= now,
    )
