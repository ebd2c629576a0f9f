"""The journal in memory, with the rules of the one in tables; everything is gone when it is."""

import asyncio
from collections.abc import Callable, Collection, Sequence

import msgspec

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.ledger.charging import later
from toolgate.ledger.claims import (
    Why,
    answering,
    continued,
    given_up,
    is_ended,
    kept_ns,
    released,
    replayable,
    submitted,
)
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.ledger.read import Read
from toolgate.ledger.state import MOVES, State
from toolgate.spec.document import sha256

_OURS = frozenset({Action.RUN, Action.AGAIN})
# Given a tenant, an approval and the time: the call that waits for it, and using it up; or neither.
Approvals = Callable[[str, str, int], "tuple[str, Callable[[], None]] | None"]


class _Plan(msgspec.Struct):
    window: float | None = None


class MemoryJournal:
    """The journal port over a list. `calls` is what a test looks at, in the order they came.

    `beside` is another journal on the same list, as another process would have it.
    """

    def __init__(
        self,
        *,
        lease: float = 15.0,
        ttl: float = 86_400.0,
        beside: "MemoryJournal | None" = None,
        approvals: Approvals | None = None,
    ) -> None:
        self.owner = Owner(lease=lease, ttl=ttl)
        self.calls: list[Entry] = [] if beside is None else beside.calls
        # By id and by key, where they stand in the list.
        self.begun: dict[str, int] = {} if beside is None else beside.begun
        self.keys: dict[tuple[str, str, str], str] = {} if beside is None else beside.keys
        self.approvals = approvals
        # What a side effect cost is told to the budgets with its end.
        self.charge: Callable[[Sequence[tuple[str, int]]], None] | None = None

    async def begin(
        self,
        entry: Entry,
        *,
        may_start: bool = True,
        basis: Basis | None = None,  # noqa: ARG002  no world is kept here
    ) -> Begun:
        """Claim the key and keep the intent, or say what is there already.

        No world is kept here: the gate has to look at its own before it decides.
        """
        asked_ns = clock.monotonic_ns()
        begun = self._claimed(entry, may_start=may_start)
        if begun.action in _OURS:
            self.owner.running.add(begun.entry.call_id, asked_ns)
        return begun

    async def answering(self, entry: Entry, *, may_start: bool = True) -> Entry | None:
        """By its key, as `begin` would find it."""
        key = (entry.tenant, entry.scope, entry.key)
        found = self.at(entry.tenant, self.keys.get(key, "")) if entry.key else None
        if found is None:
            return None
        return replayable(
            found,
            entry,
            lambda: self.run_again(found, entry),
            now_ns=self.owner.time_for(found, clock.unix_ns()),
            may_start=may_start,
        )

    def holds(self, call_id: str) -> bool:
        """By what this owner was last told of its lease."""
        return self.owner.running.holds(call_id)

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""
        self.owner.running.discard(entry.call_id)
        found = self.at(entry.tenant, entry.call_id)
        if again and found is not None and is_ended(found, entry):
            return Ended(accepted=True, wanted_by=found.wanted_by)
        if found is None or found.fence != entry.fence or entry.state not in MOVES[found.state]:
            return Ended(accepted=False)
        now = clock.unix_ns()
        if entry.state is State.RELEASED:
            after = released(found, entry, now)
            if after is None:
                return Ended(accepted=False)
            self.put(after)
            return Ended(accepted=True, wanted_by=found.wanted_by)
        window = msgspec.json.decode(entry.plan, type=_Plan).window if entry.plan else None
        kept = kept_ns(entry, self.owner.ttl_ns)
        self.put(
            msgspec.structs.replace(
                found,
                state=entry.state,
                duration_ns=entry.duration_ns,
                error_code=entry.error_code,
                error_message=entry.error_message,
                permanent=entry.permanent,
                result=entry.result,
                plan=entry.plan,
                charges=entry.charges,
                lease_ns=None,
                expires_ns=None if kept is None else now + kept,
                ended_ns=now,
                undo_until_ns=None if window is None else now + round(window * 1e9),
            )
        )
        if self.charge is not None:
            self.charge(entry.charges)
        # An answer never comes at once: who goes away meanwhile does not hear it.
        await asyncio.sleep(0)
        return Ended(accepted=True, wanted_by=found.wanted_by)

    async def give_up(self, entry: Entry) -> Entry:
        """What was released ends so; what is not here is noted."""
        found = self.at(entry.tenant, entry.call_id)
        if found is None:
            self.note(entry)
            return entry
        why = Why(entry.state, entry.error_code, entry.error_message)
        after = given_up(found, why, clock.unix_ns())
        if after is None:
            return found
        self._park(found, after)
        return after

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry."""
        for entry in self.calls:
            if entry.call_id == call_id and entry.tenant == tenant:
                return entry
        return None

    def note(self, entry: Entry | Read) -> None:
        """Keep a finished call."""
        self.calls.append(_kept(entry.entry() if isinstance(entry, Read) else entry))

    def crowded(self) -> bool:
        """Nothing ever waits."""
        return False

    async def drain(self) -> None:
        """Nothing ever waits."""

    async def calls_of(self, decisions: Collection[str], since_ns: int) -> dict[str, list[str]]:
        """By decision."""
        found: dict[str, list[str]] = {}
        for entry in self.calls:
            if entry.decision in decisions and entry.started_ns >= since_ns:
                found.setdefault(entry.decision, []).append(entry.call_id)
        return found

    async def entries(
        self, tenant: str, *, limit: int = 50, of: Whose | None = None
    ) -> Sequence[Entry]:
        """The newest first."""
        found = [
            entry
            for entry in self.calls
            if entry.tenant == tenant and (of is None or of.has(entry))
        ]
        found.sort(key=lambda entry: (entry.started_ns, entry.call_id), reverse=True)
        return found[: max(limit, 0)]

    def rows(self) -> list[Entry]:
        """The side effects, in the order that they came."""
        return [self.calls[at] for at in self.begun.values()]

    def at(self, tenant: str, call_id: str) -> Entry | None:
        """One side effect."""
        at = self.begun.get(call_id)
        found = None if at is None else self.calls[at]
        return found if found is not None and found.tenant == tenant else None

    def put(self, entry: Entry) -> None:
        """In its place, or as a new one: what waits for a person is put here by whoever asks."""
        if entry.key:
            self.keys[entry.tenant, entry.scope, entry.key] = entry.call_id
        at = self.begun.setdefault(entry.call_id, len(self.calls))
        self.calls[at : at + 1] = [entry]

    def _claimed(self, entry: Entry, *, may_start: bool) -> Begun:
        now = clock.unix_ns()
        key = (entry.tenant, entry.scope, entry.key)
        agreed = self._agreed(entry, now)
        found = self.at(entry.tenant, self.keys.get(key, "")) if entry.key else None
        if found is not None and not (agreed and agreed[0] == found.call_id):
            # Also the same id: a queued call can be brought twice.
            begun = submitted(
                found,
                entry,
                now_ns=self.owner.time_for(found, now),
                lease_ns=now + self.owner.lease_ns,
                owner=self.owner.name,
                may_start=may_start,
            )
            if begun.action is Action.FORGET and found.call_id == entry.call_id:
                # Brought once more: it has its answer, and its id is used once.
                return Begun(found, Action.REPLAY)
            if begun.action is not Action.FORGET:
                self._park(found, begun.entry)
                return begun
            ran = self.run_again(found, entry)
            if ran is not None:
                return ran
            if may_start or entry.approval:
                del self.keys[key]
                self.put(msgspec.structs.replace(found, key=""))
        if entry.approval:
            return self._on_approval(entry, agreed, now)
        if not may_start:
            return Begun(entry, Action.ASK)
        if entry.call_id in self.begun:
            raise _on_record(entry)
        new = msgspec.structs.replace(
            entry,
            state=State.STARTED,
            owner=self.owner.name,
            fence=1,
            tried=True,
            started_ns=self.owner.moment(now),
            lease_ns=now + self.owner.lease_ns,
            expires_ns=None,
            args_hash=entry.args_hash or sha256(entry.args),
        )
        self.put(new)
        return Begun(new, Action.RUN)

    def run_again(self, found: Entry, intent: Entry) -> Begun | None:
        """What answers for a failed call whose key would be free: an operator ran it again."""
        if found.state is not State.FAILED:
            return None
        known = {found.call_id: found}
        while True:
            new = [
                one
                for one in self.rows()
                if one.again_of in known and one.call_id not in known and one.tenant == found.tenant
            ]
            if not new:
                return answering(found, intent, list(known.values())[1:])
            known |= {one.call_id: one for one in new}

    def _park(self, found: Entry, entry: Entry) -> None:
        self.put(entry)
        self.parked(found, entry)

    def parked(self, found: Entry, entry: Entry) -> None:
        """What is unknown from now on costs what it held; what is not any longer may not."""
        if State.UNKNOWN in {found.state, entry.state} and self.charge is not None:
            self.charge(later(found, entry.state))

    def _agreed(self, entry: Entry, now: int) -> tuple[str, Callable[[], None]] | None:
        if not entry.approval or self.approvals is None:
            return None
        return self.approvals(entry.tenant, entry.approval, now)

    def _on_approval(
        self, entry: Entry, agreed: tuple[str, Callable[[], None]] | None, now: int
    ) -> Begun:
        waited = None if agreed is None else self.at(entry.tenant, agreed[0])
        if agreed is None or waited is None:
            return Begun(entry, Action.REFUSE)
        begun = continued(
            waited,
            entry,
            now_ns=now,
            lease_ns=now + self.owner.lease_ns,
            owner=self.owner.name,
        )
        if begun.action is not Action.RUN:
            return begun
        agreed[1]()
        new = msgspec.structs.replace(begun.entry, expires_ns=None)
        self.put(new)
        return Begun(new, Action.RUN)


def _on_record(entry: Entry) -> InvalidRequest:
    return InvalidRequest(f"The call {entry.call_id!r} is on record already; it did not run again.")


def _kept(entry: Entry) -> Entry:
    """Of a pure call the arguments are not kept, only their digest."""
    digest = entry.args_hash or sha256(entry.args)
    return msgspec.structs.replace(entry, args=b"", args_hash=digest)
