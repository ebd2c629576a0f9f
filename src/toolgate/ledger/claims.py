"""What a call that arrives makes of the one that is on record under its key."""

import msgspec

from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.machine import Action, Event, Slot, Start, Submit, Take, Undo, step
from toolgate.ledger.state import OPEN, State


def submitted(
    found: Entry, intent: Entry, *, now_ns: int, lease_ns: int, owner: str, may_start: bool
) -> Begun:
    """The entry as it is to be from now on. One that is run again is started at once."""
    wanted = Submit(digest=intent.digest, lease_ns=lease_ns, may_start=may_start)
    after = step(found.slot, wanted, now_ns)
    slot = after.slot
    if after.action in {Action.RUN, Action.AGAIN}:
        slot = step(slot, Start(slot.fence), now_ns).slot
    entry = _moved(found, slot, owner)
    if after.action is Action.WAIT and found.state in OPEN and intent.turn_id != found.turn_id:
        # A later turn of the group: the answer is its, not the first one's.
        entry = msgspec.structs.replace(entry, wanted_by=intent.turn_id or entry.wanted_by)
    return Begun(entry, after.action)


def continued(waited: Entry, intent: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """The call that waited for a person, now that one has agreed; REFUSE where it cannot go on."""
    if waited.state is not State.WAITING or waited.digest != intent.digest:
        return Begun(waited, Action.REFUSE)
    agreed = msgspec.structs.replace(waited.slot, approved=True)
    after = step(agreed, Submit(digest=intent.digest, lease_ns=lease_ns), now_ns)
    if after.action is not Action.RUN:
        return Begun(waited, Action.REFUSE)
    slot = step(after.slot, Start(after.slot.fence), now_ns).slot
    entry = msgspec.structs.replace(
        _moved(waited, slot, owner),
        scope=intent.scope,
        key=intent.key,
        approval=intent.approval,
        # It belongs to the turn that runs it, which need not be the one that asked.
        session=intent.session,
        turn_group=intent.turn_group,
        turn_id=intent.turn_id,
        decision=intent.decision,
    )
    return Begun(entry, Action.RUN)


def taken(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """A lost entry in other hands."""
    after = step(found.slot, Take(lease_ns), now_ns)
    return Begun(_moved(found, after.slot, owner), after.action)


def undoing(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """An entry that is to be taken back; one whose undo has begun needs no window any more."""
    until_ns = found.undo_until_ns
    begun = found.state in {State.COMPENSATING, State.COMPENSATED}
    if not begun and until_ns is not None and now_ns >= until_ns:
        return Begun(found, Action.REFUSE)
    after = step(found.slot, Undo(lease_ns), now_ns)
    return Begun(_moved(found, after.slot, owner), after.action)


def stepped(found: Entry, event: Event, *, now_ns: int, why: str = "") -> Entry | None:
    """The entry after what its owner or an operator said; nothing where that has no place."""
    after = step(found.slot, event, now_ns)
    if after.action is Action.REFUSE:
        return None
    entry = _moved(found, after.slot, found.owner)
    if entry.state is State.COMPENSATION_FAILED:
        entry = msgspec.structs.replace(entry, error_code="compensation_failed", error_message=why)
    if entry.state in OPEN:
        return entry
    return msgspec.structs.replace(entry, lease_ns=None, ended_ns=now_ns)


def _moved(entry: Entry, slot: Slot, owner: str) -> Entry:
    return msgspec.structs.replace(
        entry,
        state=slot.state,
        fence=slot.fence,
        lease_ns=slot.lease_ns,
        tried=slot.tried,
        owner=owner if slot.fence != entry.fence else entry.owner,
    )
