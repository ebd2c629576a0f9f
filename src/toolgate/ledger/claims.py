"""What a call that arrives makes of the one that is on record under its key."""

import msgspec

from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.machine import Action, Slot, Start, Submit, Take, Undo, step
from toolgate.ledger.state import OPEN


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


def taken(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """A lost entry in other hands."""
    after = step(found.slot, Take(lease_ns), now_ns)
    return Begun(_moved(found, after.slot, owner), after.action)


def undoing(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """An entry that is to be taken back."""
    after = step(found.slot, Undo(lease_ns), now_ns)
    return Begun(_moved(found, after.slot, owner), after.action)


def _moved(entry: Entry, slot: Slot, owner: str) -> Entry:
    return msgspec.structs.replace(
        entry,
        state=slot.state,
        fence=slot.fence,
        lease_ns=slot.lease_ns,
        tried=slot.tried,
        owner=owner if slot.fence != entry.fence else entry.owner,
    )
