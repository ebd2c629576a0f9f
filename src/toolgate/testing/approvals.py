"""Approvals in memory, with the rules of those in a table; everything is gone when it is."""

from collections.abc import Callable, Sequence

import msgspec

from toolgate import clock
from toolgate.call import Event
from toolgate.ledger.approval import (
    Approval,
    Requested,
    Some,
    Standing,
    Word,
    event_of,
    is_full,
    standing,
    waiting,
    word,
)
from toolgate.ledger.claims import submitted
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State
from toolgate.testing.journal import MemoryJournal

_OPEN = frozenset({Standing.WAITING, Standing.APPROVED})
replace = msgspec.structs.replace


class MemoryApprovals:
    """The port for approvals beside a journal in memory. `told` is what a test looks at."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.told: list[Event] = []
        self._journal = journal
        self._kept: dict[str, Approval] = {}
        journal.approvals = self._agreed

    async def request(self, wanted: Approval, intent: Entry, ttl_ns: int) -> Requested:
        """What holds for this call."""
        now = clock.unix_ns()
        if self._is_on_record(intent, now):
            return Requested(Word.ON_RECORD, wanted)
        found = [
            one
            for one in reversed(self._kept.values())
            if (one.tenant, one.hash) == (wanted.tenant, wanted.hash)
        ]
        said = word(found, now)
        if said is not None:
            return said
        self._expire(found, now)
        open_ = [
            one
            for one in self._kept.values()
            if one.tenant == wanted.tenant and standing(one, now) in _OPEN
        ]
        same = [one for one in open_ if (one.agent, one.user) == (wanted.agent, wanted.user)]
        if is_full(of_tenant=len(open_), of_requester=len(same)):
            return Requested(Word.FULL, wanted)
        asked = replace(wanted, created_ns=now, expires_ns=now + ttl_ns)
        self._kept[asked.id] = asked
        before = self._journal.at(asked.tenant, asked.call_id)
        self._journal.put(waiting(intent, asked, before))
        self.told.append(event_of(asked, "requested", now))
        return Requested(Word.WAIT, asked, is_new=True)

    async def stands(self, tenant: str, id_: str) -> Standing | None:
        """How far one got by now."""
        found = self._kept.get(id_)
        if found is None or found.tenant != tenant:
            return None
        return standing(found, clock.unix_ns())

    async def find(self, tenant: str, id_: str) -> Approval | None:
        """As it stands now."""
        found = self._kept.get(id_)
        return found if found is not None and tenant in {"", found.tenant} else None

    async def search(self, some: Some) -> Sequence[Approval]:
        """The newest first."""
        now = clock.unix_ns()
        found = [
            one
            for one in self._kept.values()
            if some.tenant in {"", one.tenant}
            and some.agent in {None, one.agent}
            and some.user in {None, one.user}
            and (not some.states or standing(one, now) in some.states)
            and (some.before is None or (one.created_ns, one.id) < some.before)
        ]
        found.sort(key=lambda one: (one.created_ns, one.id), reverse=True)
        return found[: some.limit]

    async def decide(
        self, approval: Approval, *, approved: bool, who: str, why: str
    ) -> Approval | None:
        """Once."""
        now, kept = clock.unix_ns(), self._kept.get(approval.id)
        if kept is None or standing(kept, now) is not Standing.WAITING:
            return None
        state = Standing.APPROVED if approved else Standing.DENIED
        decided = replace(kept, state=state, decided_ns=now, decided_by=who, reason=why)
        self._kept[kept.id] = decided
        if not approved:
            self._close(kept, State.FAILED, "approval_denied", f"Denied: {why}")
        self.told.append(event_of(decided, state.value, now))
        return decided

    async def sweep(self) -> int:
        """What is over expires, with its call."""
        return self._expire(list(self._kept.values()), clock.unix_ns())

    def _expire(self, some: Sequence[Approval], now: int) -> int:
        over = [
            one for one in some if one.state in _OPEN and standing(one, now) is Standing.EXPIRED
        ]
        for one in over:
            self._kept[one.id] = replace(one, state=Standing.EXPIRED)
            self._close(one, State.EXPIRED, "", "Nobody came in time.")
            self.told.append(event_of(one, "expired", now))
        return len(over)

    def _close(self, approval: Approval, state: State, code: str, message: str) -> None:
        entry = self._journal.at(approval.tenant, approval.call_id)
        if entry is not None and entry.state is State.WAITING:
            self._journal.put(replace(entry, state=state, error_code=code, error_message=message))

    def _agreed(self, tenant: str, id_: str, now: int) -> tuple[str, Callable[[], None]] | None:
        """For the journal: which call may begin on it, and how it is used up."""
        found = self._kept.get(id_)
        if found is None or found.tenant != tenant or standing(found, now) is not Standing.APPROVED:
            return None

        def use() -> None:
            self._kept[id_] = replace(found, state=Standing.USED)

        return found.call_id, use

    def _is_on_record(self, intent: Entry, now: int) -> bool:
        key = (intent.tenant, intent.scope, intent.key)
        call_id = self._journal.keys.get(key, "") if intent.key else ""
        found = self._journal.at(intent.tenant, call_id)
        if found is None:
            return False
        begun = submitted(found, intent, now_ns=now, lease_ns=now, owner="", may_start=False)
        if begun.action is Action.FORGET:
            return self._journal.run_again(found, intent) is not None
        return begun.action is not Action.ASK
