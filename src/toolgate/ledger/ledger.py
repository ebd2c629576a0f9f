"""What happened, for those who look after it: lost calls, undo, an operator's word."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.state import State


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """Side effects to look for. Empty means any."""

    tenant: str
    turn_group: str = ""
    # Whose turn group it is (`ledger.history.turn_of`'s owner); turn groups of others look alike.
    scope: str = ""
    chain: str = ""
    tool: str = ""
    agent: str = ""
    user: str = ""
    # Began then, or later.
    since_ns: int = 0
    states: frozenset[State] = frozenset()
    # The call that they run again, or take back.
    of: str = ""
    # A cursor: only entries that began before this one.
    before: str = ""
    limit: int = 50


def scopes(owner: str) -> tuple[str, ...]:
    """The scopes that one owner's calls have (`executor.claim`)."""
    return tuple(f"{owner}/{kind}" for kind in ("turn", "key", "call", "undo"))


def owner_in(scope: str) -> str:
    """Whose scope it is."""
    return scope.rpartition("/")[0]


def no_such_cursor(which: Which) -> InvalidRequest:
    """A cursor is the id of a side effect of the same tenant."""
    return InvalidRequest(
        f"There is no call {which.before!r} to go on from; begin again without a cursor."
    )


class Ledger(Protocol):
    """Side effects on record. A tenant's are only found by that tenant's name."""

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry."""
        ...

    async def search(self, which: Which) -> Sequence[Entry]:
        """The newest first."""
        ...

    async def lost(
        self, limit: int, *, but: Collection[str] = (), busy: Collection[str] = ()
    ) -> Sequence[Entry]:
        """Open entries whose lease is over by the store's clock, without the calls `but` and the
        tenants `busy`.

        Each tenant's first one comes first, then each one's second: none waits for all of another.
        Of one tenant, whose lease ended first; of those together, the latest call. Of what is to be
        taken back in a turn group or a chain, only the latest: the others come after it.
        """
        ...

    async def unsure(self, limit: int, *, behind: Entry | None = None) -> Sequence[Entry]:
        """Of all tenants, unknown entries whose tool has a probe; newest first, `behind` one."""
        ...

    async def take(self, entry: Entry) -> Begun:
        """Own a lost entry under the next fence, as `machine.Take` says; REFUSE if another did.

        PARK: it is unknown now. RUN, AGAIN and PROBE: it is claimed, or compensating.
        """
        ...

    async def start(self, entry: Entry) -> bool:
        """Put the intent of a claimed entry on record; whether its fence still held."""
        ...

    async def undo(self, entry: Entry, *, who: str = "", why: str = "") -> Begun:
        """Begin to take it back, as `machine.Undo` says: COMPENSATE, WAIT, REPLAY or REFUSE.

        REFUSE also where its window is over by the store's clock. With `who`, the audit has an
        operator's name and reason.
        """
        ...

    async def undone(self, entry: Entry, *, done: bool, why: str = "") -> bool:
        """How taking it back ended; whether its fence still held."""
        ...

    async def settle(self, entry: Entry, *, happened: bool, who: str, why: str) -> bool:
        """An operator's word on an unknown one; whether it was still unknown."""
        ...

    async def note(
        self, entry: Entry, change: str, details: Mapping[str, str], *, who: str, why: str
    ) -> None:
        """Put into the audit what an operator did about an entry that stays as it is."""
        ...

    def let_go(self, entry: Entry) -> None:
        """Prolong its lease no longer: whoever looks after lost ones goes on with it."""
        ...

    async def renew(self) -> int:
        """Prolong the leases of all that this process is at; how many there were.

        What it could not end is left out, so that somebody looks after it.
        """
        ...
