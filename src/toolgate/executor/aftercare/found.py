"""One call, wherever there is something of it: on record, in the queue, or in both."""

from collections.abc import Callable
from typing import Any, NamedTuple

from toolgate.caller import Caller
from toolgate.errors import CallNotFound
from toolgate.executor.aftercare import recalled, shown
from toolgate.ledger.entry import Entry
from toolgate.ledger.history import owner_of
from toolgate.ledger.journal import Journal
from toolgate.ledger.ledger import Ledger, Which, owner_in
from toolgate.ledger.state import OPEN, State
from toolgate.queue.message import read_output
from toolgate.queue.queue import OPEN as QUEUED
from toolgate.queue.queue import Kept, Queues, Stage
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

_UNDER_WAY = frozenset({State.RECEIVED, State.RESERVED, State.WAITING, State.RELEASED, *OPEN})


class Found(NamedTuple):
    """`effect` is its tool's, for a call that no worker has begun. `entry` bears the id of another
    call where that one answered for this: the same business is done once, by whoever began it.
    """

    entry: Entry | None
    kept: Kept | None
    effect: Effect = Effect.IRREVERSIBLE

    @property
    def is_open(self) -> bool:
        """Whether something of it is still to come."""
        if self.kept is not None and self.kept.stage in QUEUED:
            return True
        return self.entry is not None and self.entry.state in _UNDER_WAY

    def is_of(self, caller: Caller) -> bool:
        """Whether it is the caller's own."""
        if self.entry is not None:
            return recalled.is_of(self.entry, caller)
        return self.kept is not None and self.kept.scope == owner_of(caller)

    def linked(self, tenant: str, call_id: str) -> Which:
        """Those that ran it again, or took it back."""
        if self.entry is None:
            return Which(tenant=tenant, of=call_id)
        return Which(tenant=tenant, of=self.entry.call_id, since_ns=self.entry.started_ns)

    def shown(self) -> dict[str, Any]:
        """All that there is to tell."""
        if self.kept is not None:
            return shown.queued(self.kept, self.entry, self.effect)
        assert self.entry is not None  # noqa: S101  one of them is there
        return shown.whole(self.entry)


class Finding:
    """Looks in both places."""

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        queues: Queues | None,
        spec_of: Callable[[str], ToolSpec | None],
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._queues = queues
        self._spec_of = spec_of

    async def find(self, tenant: str, call_id: str) -> Found:
        """All that there is of a call, or `CallNotFound`."""
        kept = await self._kept(tenant, call_id)
        entry = await self._journal.find(tenant, call_id)
        if entry is None and kept is None:
            raise CallNotFound(call_id)
        if entry is None and kept is not None:
            entry = await self._answering(kept)
        spec = None if kept is None else self._spec_of(kept.tool)
        return Found(entry, kept, Effect.IRREVERSIBLE if spec is None else spec.effect)

    async def effect(self, tenant: str, call_id: str) -> Entry | None:
        """A side effect on record, also by the id of a call that it answered for."""
        entry = await self._ledger.find(tenant, call_id)
        if entry is not None:
            return entry
        kept = await self._kept(tenant, call_id)
        return None if kept is None else await self._answering(kept)

    async def _kept(self, tenant: str, call_id: str) -> Kept | None:
        return None if self._queues is None else await self._queues.calls.find(tenant, call_id)

    async def _answering(self, kept: Kept) -> Entry | None:
        """The call whose answer a queued one was given, having none of its own."""
        if kept.stage is not Stage.DONE or not kept.output:
            return None
        ran = read_output(kept.output).call_id
        if not ran or ran == kept.call_id:
            return None
        entry = await self._ledger.find(kept.tenant, ran)
        if entry is None or entry.tool != kept.tool:
            return None
        # An extension may answer with anything: what is somebody else's is not shown for it.
        return entry if owner_in(entry.scope) == kept.scope else None
