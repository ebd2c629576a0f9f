"""What a call that arrives makes of the one that is on record under its key."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.machine import (
    Action,
    Event,
    GiveUp,
    Release,
    Slot,
    Start,
    Submit,
    Take,
    Undo,
    step,
)
from toolgate.ledger.state import OPEN, State

_RUNS = frozenset({State.CLAIMED, State.STARTED})
_MINE = frozenset({Action.RUN, Action.AGAIN})
# What a call that was run again may be, so that the first one is not done once more: what is known
# comes before what is still to come, and that before what nobody knows.
_SAYS = (
    State.SUCCEEDED,
    State.COMPENSATION_FAILED,
    State.COMPENSATING,
    State.STARTED,
    State.CLAIMED,
    State.UNKNOWN,
    State.WAITING,
    State.COMPENSATED,
)


def submitted(
    found: Entry, intent: Entry, *, now_ns: int, lease_ns: int, owner: str, may_start: bool
) -> Begun:
    """The entry as it is to be from now on. One that is run again is started at once."""
    wanted = Submit(digest=intent.digest, lease_ns=lease_ns, may_start=may_start)
    brought = _brought(found, intent)
    # What is unknown is asked for again while its key holds, which it does anew from then on.
    after = step((found if found.state is State.UNKNOWN else brought).slot, wanted, now_ns)
    slot = after.slot
    if after.action is Action.AGAIN and _has_its_answer(found, intent):
        return Begun(found, Action.REPLAY)
    if after.action in _MINE:
        found, slot = brought, step(slot, Start(slot.fence), now_ns).slot
    entry = _moved(found, slot, owner)
    if after.action is Action.AGAIN:
        entry = msgspec.structs.replace(entry, doubt=True)
    if after.action is Action.RUN:
        entry = msgspec.structs.replace(entry, started_ns=now_ns)
    if after.action is Action.PARK:
        entry = msgspec.structs.replace(entry, ended_ns=now_ns)
    if after.action is Action.WAIT and found.state in OPEN and intent.turn_id != found.turn_id:
        # A later turn of the group: the answer is its, not the first one's.
        entry = msgspec.structs.replace(entry, wanted_by=intent.turn_id or entry.wanted_by)
    return Begun(entry, after.action)


def _has_its_answer(found: Entry, intent: Entry) -> bool:
    """Whether a queue brings once more what has ended: nobody has asked for it again."""
    return found.state is State.UNKNOWN and found.call_id == intent.call_id


def _brought(found: Entry, intent: Entry) -> Entry:
    """What was released, or is unknown, as it would be gone on with.

    What was released holds what this attempt holds. Brought by itself, and never begun, it is what
    it is now: its tool may be another since.
    """
    if found.state is State.UNKNOWN:
        # What was said of it holds no longer, nor is it known who waits for it. Its result stays
        # until there is another: the audit has said what is on record.
        return msgspec.structs.replace(
            found,
            expires_ns=None,
            error_code="",
            error_message="",
            wanted_by="",
            ended_ns=0,
        )
    if found.state is not State.RELEASED:
        return found
    if found.tried or found.call_id != intent.call_id:
        return msgspec.structs.replace(found, charges=intent.charges, decision=intent.decision)
    return msgspec.structs.replace(
        intent,
        state=found.state,
        fence=found.fence,
        lease_ns=None,
        expires_ns=None,
        tried=False,
        approval=found.approval,
        wanted_by=found.wanted_by,
    )


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
        # What was done while it waited came before it.
        started_ns=now_ns,
        scope=intent.scope,
        key=intent.key,
        approval=intent.approval,
        # It belongs to the turn that runs it, which need not be the one that asked.
        session=intent.session,
        turn_group=intent.turn_group,
        turn_id=intent.turn_id,
        decision=intent.decision,
        doubt=waited.tried,
    )
    return Begun(entry, Action.RUN)


def answering(found: Entry, intent: Entry, again: Iterable[Entry]) -> Begun | None:
    """Of a failed call that an operator ran again: the call that ran then answers for its key.

    Where every one of those is known not to have happened either, the key is free.
    """
    if found.digest != intent.digest:
        return None
    ran = min((one for one in again if one.state in _SAYS), key=_said_first, default=None)
    if ran is None:
        return None
    return Begun(ran, Action.WAIT if ran.state in _RUNS else Action.REPLAY)


def replayable(
    found: Entry, intent: Entry, again: Callable[[], Begun | None], *, now_ns: int, may_start: bool
) -> Entry | None:
    """The entry whose answer is given once more; nothing where anything is to be done instead.

    `again`: what an operator's further attempt at a failed one says, asked where that matters.
    """
    begun = submitted(found, intent, now_ns=now_ns, lease_ns=0, owner="", may_start=may_start)
    said = again() if begun.action is Action.FORGET else begun
    return said.entry if said is not None and said.action is Action.REPLAY else None


def _said_first(entry: Entry) -> int:
    return _SAYS.index(entry.state)


def taken(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """A lost entry in other hands."""
    after = step(found.slot, Take(lease_ns), now_ns)
    entry = _moved(found, after.slot, owner)
    if after.action is Action.PARK:
        entry = msgspec.structs.replace(entry, ended_ns=now_ns)
    return Begun(entry, after.action)


def undoing(found: Entry, *, now_ns: int, lease_ns: int, owner: str) -> Begun:
    """An entry that is to be taken back; one whose undo has begun needs no window any more."""
    until_ns = found.undo_until_ns
    begun = found.state in {State.COMPENSATING, State.COMPENSATED}
    if not begun and until_ns is not None and now_ns >= until_ns:
        return Begun(found, Action.REFUSE)
    after = step(found.slot, Undo(lease_ns), now_ns)
    return Begun(_moved(found, after.slot, owner), after.action)


def kept_ns(entry: Entry, ttl_ns: int) -> int | None:
    """For how long its key is taken once it has ended; nothing means for ever, or no key.

    It counts from the end: a call that takes longer than that would be run twice. What takes
    another call back is done once, whenever it is asked for again.
    """
    return ttl_ns if entry.key and not entry.undo_of else None


def is_ended(found: Entry, ended: Entry) -> bool:
    """Whether this very end is on record: nobody else has its fence."""
    return (found.fence, found.state) == (ended.fence, ended.state)


def released(found: Entry, entry: Entry, now_ns: int) -> Entry | None:
    """What its owner did not come to begin, and why not; nothing where it has no say any more."""
    after = step(found.slot, Release(fence=entry.fence, doubt=entry.doubt), now_ns)
    if after.action is Action.REFUSE:
        return None
    return msgspec.structs.replace(
        _moved(found, after.slot, found.owner),
        error_code=entry.error_code,
        error_message=entry.error_message,
        duration_ns=entry.duration_ns,
        # What may have happened before costs, if nobody learns that it did not.
        charges=found.charges if entry.doubt else (),
    )


class Why(NamedTuple):
    """What becomes of a call that nobody brings again, and what is said of it."""

    state: State
    code: str
    message: str


def given_up(found: Entry, why: Why, now_ns: int) -> Entry | None:
    """What was released and nobody brings again; nothing where it is another's to end."""
    # Its key is given back by its state, or is not: no time has a say in that.
    after = stepped(found, GiveUp(why.state), now_ns=now_ns, ttl_ns=0)
    if after is None:
        return None
    return msgspec.structs.replace(after, error_code=why.code, error_message=why.message)


def stepped(found: Entry, event: Event, *, now_ns: int, ttl_ns: int, why: str = "") -> Entry | None:
    """The entry after what its owner or an operator said; nothing where that has no place."""
    after = step(found.slot, event, now_ns)
    if after.action is Action.REFUSE:
        return None
    entry = _moved(found, after.slot, found.owner)
    if entry.state is State.COMPENSATION_FAILED:
        entry = msgspec.structs.replace(entry, error_code="compensation_failed", error_message=why)
    if entry.state in OPEN:
        return entry
    kept = kept_ns(entry, ttl_ns)
    expires_ns = None if kept is None else now_ns + kept
    return msgspec.structs.replace(entry, lease_ns=None, expires_ns=expires_ns, ended_ns=now_ns)


def _moved(entry: Entry, slot: Slot, owner: str) -> Entry:
    return msgspec.structs.replace(
        entry,
        state=slot.state,
        fence=slot.fence,
        lease_ns=slot.lease_ns,
        tried=slot.tried,
        owner=owner if slot.fence != entry.fence else entry.owner,
    )
