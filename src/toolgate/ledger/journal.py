"""The journal: no record, no side effect. What the executor writes; `ledger.ledger` reads it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from toolgate.errors import PolicyUnavailable
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.machine import Action
from toolgate.ledger.read import Read


class Outdated(PolicyUnavailable):
    """What the call was decided on has changed since, so it was not begun.

    For whoever has decided: it decides anew. Nobody else hears of it.
    """

    def __init__(self) -> None:
        super().__init__("The rules changed while this call was on its way. Nothing ran.")


class Basis(NamedTuple):
    """What a call was decided on: a revision of the world, and the parts of it that matter."""

    revision: int
    parts: tuple[str, ...]


class Begun(msgspec.Struct, frozen=True):
    """What is on record once a call has been put there, and what its caller has to do."""

    entry: Entry
    action: Action


class Ended(msgspec.Struct, frozen=True):
    """Whether the owner still had a say, and which later turn wants the answer, if any."""

    accepted: bool
    wanted_by: str = ""


class Journal(Protocol):
    """Where entries are kept. `begin` and `end` return when the entry is durable."""

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        """Claim the key and write the intent, before the effect, in one transaction.

        `basis`: what it was decided on. Where any of that has changed since, `Outdated`, and
        nothing is written.

        RUN and AGAIN: the entry that comes back is started, and has its fence. An entry with an
        approval takes the place of the one that waited for it, and uses the approval up; where
        that is not to be had, REFUSE. For all others `machine.step` says what the key's slot means.
        `InvalidRequest` if the call id is on record already.
        """
        ...

    async def answering(self, entry: Entry, *, may_start: bool = True) -> Entry | None:
        """What `begin` would answer the entry's key with; nothing where there is more to do.

        What is to be begun, or waited for, has no answer yet. Looking changes nothing.
        """
        ...

    def holds(self, call_id: str) -> bool:
        """Whether a call that was begun here is still ours for sure, as far as can be told here."""
        ...

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        """How a started call ended: outcome, result, plan, audit and events in one transaction.

        What its fence and `MOVES` do not allow changes nothing. `again`: this very end may be on
        record, and whoever wrote it did not wait for the answer. RELEASED: it was not begun, and
        whoever brought it brings it again.
        """
        ...

    async def give_up(self, entry: Entry) -> Entry:
        """A queued call that nobody brings again, and that did not begin; what is on record then.

        What was released ends so, and what is not on record is noted. All else stays as it is.
        """
        ...

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry, also of a pure call that is still to be written."""
        ...

    def note(self, entry: Entry | Read) -> None:
        """Write soon, together with others, a finished pure call, or one that was refused."""
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

    async def entries(
        self, tenant: str, *, limit: int = 50, of: Whose | None = None
    ) -> Sequence[Entry]:
        """The newest entries of a tenant, newest first; `of` one agent, as far back as is looked.

        Who else is busy meanwhile takes none of their places.
        """
        ...
