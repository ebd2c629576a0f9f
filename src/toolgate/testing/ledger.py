"""The ledger in memory, over the journal's list."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from toolgate import clock
from toolgate.ledger.claims import stepped, taken, undoing
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.ledger import Which, no_such_cursor, owner_in, scopes
from toolgate.ledger.machine import Action, Event, Recovery, Settle, Start, Undone, is_live
from toolgate.ledger.state import OPEN, State
from toolgate.testing.journal import MemoryJournal

_OURS = frozenset({Action.RUN, Action.AGAIN, Action.PROBE, Action.COMPENSATE})


class MemoryLedger:
    """The ledger port. Its owner is the journal's; `told` is what operators did to which call."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self._owner = journal.owner
        self.told: list[tuple[str, str, str, str]] = []

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One side effect."""
        return self._journal.at(tenant, call_id)

    async def search(self, which: Which) -> Sequence[Entry]:
        """The newest first."""
        found = sorted(
            (entry for entry in self._journal.rows() if _fits(entry, which)),
            key=lambda entry: (entry.started_ns, entry.call_id),
            reverse=True,
        )
        if which.before:
            last = self._journal.at(which.tenant, which.before)
            if last is None or (which.scope and last.scope not in scopes(which.scope)):
                raise no_such_cursor(which)
            place = last.started_ns, last.call_id
            found = [entry for entry in found if (entry.started_ns, entry.call_id) < place]
        return found[: max(which.limit, 0)]

    async def lost(
        self, limit: int, *, but: Collection[str] = (), busy: Collection[str] = ()
    ) -> Sequence[Entry]:
        """Tenants by turns; of each, whose lease ended first."""
        now, rows = clock.unix_ns(), self._journal.rows()
        found = [
            entry
            for entry in rows
            if entry.state in OPEN
            and not is_live(entry.slot, now)
            and entry.call_id not in but
            and entry.tenant not in busy
            and not any(_goes_before(one, entry) for one in rows)
        ]
        found.sort(key=lambda entry: (entry.lease_ns or 0, -entry.started_ns, entry.call_id))
        turns: Counter[str] = Counter()
        placed: list[tuple[int, int, Entry]] = []
        for at, entry in enumerate(found):
            turns[entry.tenant] += 1
            placed.append((turns[entry.tenant], at, entry))
        placed.sort(key=lambda one: one[:2])
        return [entry for _, _, entry in placed[: max(limit, 0)]]

    async def unsure(self, limit: int, *, behind: Entry | None = None) -> Sequence[Entry]:
        """The newest first."""
        found = [
            entry
            for entry in self._journal.rows()
            if entry.state is State.UNKNOWN
            and entry.recovery is Recovery.PROBED
            and (behind is None or _ended(entry) < _ended(behind))
        ]
        found.sort(key=_ended, reverse=True)
        return found[: max(limit, 0)]

    async def take(self, entry: Entry) -> Begun:
        """By the entry as it is now."""
        found = self._journal.at(entry.tenant, entry.call_id)
        if found is None or found.fence != entry.fence or self._owner.is_at(found):
            return Begun(found or entry, Action.REFUSE)
        now = clock.unix_ns()
        lease_ns = now + self._owner.lease_ns
        begun = taken(found, now_ns=now, lease_ns=lease_ns, owner=self._owner.name)
        self._journal.parked(found, begun.entry)
        return self._held(begun)

    async def start(self, entry: Entry) -> bool:
        """From here on it may have happened."""
        return self._step(entry, Start(entry.fence))

    async def undo(self, entry: Entry, *, who: str = "", why: str = "") -> Begun:
        """By the entry as it is now."""
        self.told.append(("call.undo", entry.call_id, who, why))
        found = self._journal.at(entry.tenant, entry.call_id)
        if found is None:
            return Begun(entry, Action.REFUSE)
        now = clock.unix_ns()
        seen_ns, lease_ns = self._owner.time_for(found, now), now + self._owner.lease_ns
        return self._held(undoing(found, now_ns=seen_ns, lease_ns=lease_ns, owner=self._owner.name))

    async def undone(self, entry: Entry, *, done: bool, why: str = "") -> bool:
        """What failed can be tried again."""
        self._owner.running.discard(entry.call_id)
        return self._step(entry, Undone(fence=entry.fence, done=done), why)

    async def settle(self, entry: Entry, *, happened: bool, who: str, why: str) -> bool:
        """Whoever knows it says so under a name, with a reason."""
        self.told.append(("call.settled", entry.call_id, who, why))
        return self._step(entry, Settle(happened))

    async def note(
        self,
        entry: Entry,
        change: str,
        details: Mapping[str, str],  # noqa: ARG002  nobody audits memory
        *,
        who: str,
        why: str,
    ) -> None:
        """Keep it in `told`."""
        self.told.append((change, entry.call_id, who, why))

    def let_go(self, entry: Entry) -> None:
        """It is not at it any more, whether it has said so or not."""
        self._owner.running.discard(entry.call_id)

    async def renew(self) -> int:
        """All that run here."""
        lease_ns = clock.unix_ns() + self._owner.lease_ns
        renewed = [
            entry
            for entry in self._journal.rows()
            if entry.call_id in self._owner.running
            and entry.owner == self._owner.name
            and entry.state in OPEN
            and entry.lease_ns is not None
        ]
        for entry in renewed:
            self._journal.put(msgspec.structs.replace(entry, lease_ns=lease_ns))
            self._owner.running.add(entry.call_id, clock.monotonic_ns())
        return len(renewed)

    def _held(self, begun: Begun) -> Begun:
        self._journal.put(begun.entry)
        if begun.action in _OURS:
            self._owner.running.add(begun.entry.call_id, clock.monotonic_ns())
        return begun

    def _step(self, entry: Entry, event: Event, why: str = "") -> bool:
        found = self._journal.at(entry.tenant, entry.call_id)
        now, ttl_ns = clock.unix_ns(), self._owner.ttl_ns
        after = None if found is None else stepped(found, event, now_ns=now, ttl_ns=ttl_ns, why=why)
        if found is not None and after is not None:
            self._journal.put(after)
            self._journal.parked(found, after)
        return after is not None


def _ended(entry: Entry) -> tuple[int, str]:
    return entry.ended_ns, entry.call_id


def _goes_before(one: Entry, entry: Entry) -> bool:
    """Whether it is to be taken back before the other."""
    return (
        one.state is entry.state is State.COMPENSATING
        and one.tenant == entry.tenant
        and owner_in(one.scope) == owner_in(entry.scope)
        and one.started_ns > entry.started_ns
        and (
            one.turn_group == entry.turn_group
            if entry.turn_group
            else bool(entry.chain) and one.chain == entry.chain
        )
    )


def _fits(entry: Entry, which: Which) -> bool:
    return (
        entry.tenant == which.tenant
        and which.turn_group in {"", entry.turn_group}
        and which.chain in {"", entry.chain}
        and which.tool in {"", entry.tool}
        and which.agent in {"", entry.agent}
        and which.user in {"", entry.user}
        and (not which.of or which.of in {entry.again_of, entry.undo_of})
        and (not which.scope or entry.scope in scopes(which.scope))
        and (not which.states or entry.state in which.states)
        and entry.started_ns >= which.since_ns
    )
