"""The journal in memory, with the rules of the one in tables; everything is gone when it is."""

from collections.abc import Collection, Sequence

import msgspec

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.ledger.claims import submitted
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.state import MOVES, State
from toolgate.spec.document import sha256


class MemoryJournal:
    """The journal port over a list. `calls` is what a test looks at, in the order they came."""

    def __init__(self, *, lease: float = 15.0, ttl: float = 86_400.0) -> None:
        self.calls: list[Entry] = []
        self.owner = "memory"
        self._lease_ns = round(lease * 1e9)
        self._ttl_ns = round(ttl * 1e9)
        self._begun: dict[str, int] = {}
        self._keys: dict[tuple[str, str, str], str] = {}

    async def begin(self, entry: Entry, *, may_start: bool = True) -> Begun:
        """Claim the key and keep the intent, or say what is there already."""
        if entry.call_id in self._begun:
            raise InvalidRequest(
                f"The call {entry.call_id!r} is on record already; it did not run again."
            )
        now = clock.unix_ns()
        key = (entry.tenant, entry.scope, entry.key)
        if entry.key and key in self._keys:
            at = self._begun[self._keys[key]]
            begun = submitted(
                self.calls[at],
                entry,
                now_ns=now,
                lease_ns=now + self._lease_ns,
                owner=self.owner,
                may_start=may_start,
            )
            if begun.action is not Action.FORGET:
                self.calls[at] = begun.entry
                return begun
        entry = msgspec.structs.replace(
            entry,
            state=State.STARTED,
            owner=self.owner,
            fence=1,
            tried=True,
            lease_ns=now + self._lease_ns,
            expires_ns=now + self._ttl_ns if entry.key else None,
            args_hash=entry.args_hash or sha256(entry.args),
        )
        if entry.key:
            self._keys[key] = entry.call_id
        self._begun[entry.call_id] = len(self.calls)
        self.calls.append(entry)
        return Begun(entry, Action.RUN)

    async def end(self, entry: Entry) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""
        at = self._begun.get(entry.call_id)
        if at is None:
            return Ended(accepted=False)
        found = self.calls[at]
        if found.fence != entry.fence or entry.state not in MOVES[found.state]:
            return Ended(accepted=False)
        self.calls[at] = msgspec.structs.replace(
            found,
            state=entry.state,
            duration_ns=entry.duration_ns,
            error_code=entry.error_code,
            error_message=entry.error_message,
            permanent=entry.permanent,
            result=entry.result,
            plan=entry.plan,
            lease_ns=None,
            ended_ns=clock.unix_ns(),
        )
        return Ended(accepted=True, wanted_by=found.wanted_by)

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry."""
        for entry in self.calls:
            if entry.call_id == call_id and entry.tenant == tenant:
                return entry
        return None

    def note(self, entry: Entry) -> None:
        """Keep a finished call."""
        self.calls.append(_kept(entry))

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

    async def entries(self, tenant: str, *, limit: int = 50) -> Sequence[Entry]:
        """The newest first."""
        found = [entry for entry in self.calls if entry.tenant == tenant]
        found.sort(key=lambda entry: (entry.started_ns, entry.call_id), reverse=True)
        return found[: max(limit, 0)]


def _kept(entry: Entry) -> Entry:
    """Of a pure call the arguments are not kept, only their digest."""
    digest = entry.args_hash or sha256(entry.args)
    return msgspec.structs.replace(entry, args=b"", args_hash=digest)
