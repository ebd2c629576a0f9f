"""The journal in memory, with the rules of the one in tables; everything is gone when it is."""

from collections.abc import Collection, Sequence

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import MOVES, Entry
from toolgate.spec.document import sha256


class MemoryJournal:
    """The journal port over a list. `calls` is what a test looks at, in the order they came."""

    def __init__(self) -> None:
        self.calls: list[Entry] = []
        self._begun: dict[str, int] = {}

    async def begin(self, entry: Entry) -> None:
        """Keep the intent."""
        if entry.call_id in self._begun:
            raise InvalidRequest(
                f"The call {entry.call_id!r} is on record already; it did not run again."
            )
        self._begun[entry.call_id] = len(self.calls)
        self.calls.append(_kept(entry))

    async def end(self, entry: Entry) -> None:
        """Only a started entry can end, and only once; any other stays as it is."""
        at = self._begun.get(entry.call_id)
        if at is None or entry.state not in MOVES[self.calls[at].state]:
            return
        self.calls[at] = msgspec.structs.replace(
            self.calls[at],
            state=entry.state,
            duration_ns=entry.duration_ns,
            error_code=entry.error_code,
            error_message=entry.error_message,
        )

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
    """Arguments are not kept, only their digest."""
    digest = entry.args_hash or sha256(entry.args)
    return msgspec.structs.replace(entry, args=b"", args_hash=digest)
