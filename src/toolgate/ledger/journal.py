"""The journal: no record, no side effect."""

from collections.abc import Collection, Sequence
from typing import Protocol

from toolgate.ledger.entry import Entry


class Journal(Protocol):
    """Where entries are kept. `begin` and `end` return when the entry is durable."""

    async def begin(self, entry: Entry) -> None:
        """Write the intent of a side effect, before it happens; `InvalidRequest` if it is there."""
        ...

    async def end(self, entry: Entry) -> None:
        """Complete an entry that was begun. What `MOVES` does not allow changes nothing."""
        ...

    def note(self, entry: Entry) -> None:
        """Write a finished pure call soon, together with others."""
        ...

    def crowded(self) -> bool:
        """Whether so many wait to be written that a new call should `drain` first."""
        ...

    async def drain(self) -> None:
        """Write what waits, now."""
        ...

    async def calls_of(self, decisions: Collection[str], since_ns: int) -> dict[str, list[str]]:
        """The ids of the calls since then that these decisions let pass, by decision."""
        ...

    async def entries(self, tenant: str, *, limit: int = 50) -> Sequence[Entry]:
        """The newest entries of a tenant, newest first."""
        ...
