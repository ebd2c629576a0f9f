"""Who this process is to the ledger, and what it is at."""

import os

from toolgate import clock
from toolgate.ledger.entry import Entry


class Owner:
    """A name that no other process has, how long its word holds, and the calls it runs.

    What it ends keeps its key for a time, by `ttl_ns`.

    Only what it runs is kept alive: a row whose answer never came would else be its for ever.
    """

    def __init__(self, *, lease: float = 15.0, ttl: float = 86_400.0) -> None:
        """Both are in seconds."""
        self.name = f"{os.getpid():x}-{os.urandom(4).hex()}"
        self.lease_ns = round(lease * 1e9)
        self.ttl_ns = round(ttl * 1e9)
        self.running = Running(self.lease_ns)
        self._last_ns = 0

    def moment(self, now_ns: int) -> int:
        """When a claim is made: later than the last one here, also where a clock was set back."""
        self._last_ns = max(now_ns, self._last_ns + 1)
        return self._last_ns

    def is_at(self, entry: Entry) -> bool:
        """Whether it runs here, under a fence of ours: late with a word, but not lost."""
        return entry.owner == self.name and entry.call_id in self.running

    def time_for(self, entry: Entry, now_ns: int) -> int:
        """The moment to judge an entry by: what runs here has its lease, also where it is over."""
        return min(now_ns, (entry.lease_ns or now_ns) - 1) if self.is_at(entry) else now_ns


class Running(dict[str, int]):
    """Calls, and until when each is surely its owner's, on the monotonic clock."""

    def __init__(self, lease_ns: int) -> None:
        super().__init__()
        self._lease_ns = lease_ns

    def add(self, call_id: str, asked_ns: int) -> None:
        """Its lease began, or was prolonged, not before this was asked for."""
        self[call_id] = asked_ns + self._lease_ns

    def discard(self, call_id: str) -> None:
        """Nobody is at it here any more."""
        self.pop(call_id, None)

    def holds(self, call_id: str) -> bool:
        """Whether nobody else can have taken it: who stood still for too long finds out here."""
        until_ns = self.get(call_id)
        return until_ns is None or clock.monotonic_ns() < until_ns
