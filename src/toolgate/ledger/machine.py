"""The life of one call, pure: a slot, an event and the time give the slot after it, and what to do.

A slot is what the ledger knows of a call. Whoever acts on a slot holds its fence; an owner that was
away too long finds a higher one and has nothing to say any more. A slot without a lease is live.
"""

from enum import StrEnum

import msgspec

from toolgate.ledger.state import MOVES, OPEN, State
from toolgate.spec.tool import ToolSpec

_NEW = frozenset({State.RECEIVED, State.RESERVED})
_UNTRIED = _NEW | {State.WAITING}
# Nothing was tried, and nothing is to be said about it: the key is free.
_VOID = frozenset({State.SUPERSEDED, State.EXPIRED})
# Time does not free their keys: it would let happen twice what nobody has looked at.
_KEPT = OPEN | {State.UNKNOWN}
_ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.UNKNOWN})
_NOT_BEGUN = frozenset({State.FAILED, State.EXPIRED})


class Recovery(StrEnum):
    """What may be done about a call whose end nobody saw."""

    AGAIN = "again"  # running it twice equals running it once
    KEYED = "keyed"  # the far side knows it by its key
    PROBED = "probed"  # another tool can tell whether it happened
    PARK = "park"  # only a person can tell


def recovery_of(spec: ToolSpec) -> Recovery:
    """A probe is asked even where a key would do: it costs no second attempt."""
    if spec.effect.repeatable:
        return Recovery.AGAIN
    if spec.probe is not None:
        return Recovery.PROBED
    return Recovery.KEYED if spec.downstream_key is not None else Recovery.PARK


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine looks at."""

    state: State
    # Of the arguments and the tool's definition: the same key with another digest is a conflict.
    digest: str
    fence: int = 0
    lease_ns: int | None = None
    # Until when the key is taken, once it has ended; before that, until when a person may agree.
    expires_ns: int | None = None
    recovery: Recovery = Recovery.PARK
    # Whether any owner put its intent on record, and did not take that back.
    tried: bool = False
    approved: bool = False
    # A person's word was used up for it: it needs no other one to be gone on with.
    agreed: bool = False
    # A failure that the same call would meet again; any other gives its key back.
    permanent: bool = False


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """A call arrives whose key finds this slot."""

    digest: str
    lease_ns: int | None
    # Without a person's word it may be answered, but not begun.
    may_start: bool = True


class Start(msgspec.Struct, frozen=True):
    """The owner has put its intent on record."""

    fence: int


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The owner says how it ended."""

    fence: int
    state: State
    permanent: bool = False


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The owner did not come to begin: whoever brought it to them brings it again."""

    fence: int
    # Whether an owner before this one may have begun it.
    doubt: bool = False


class GiveUp(msgspec.Struct, frozen=True):
    """Nobody brings it again. `state`: what that makes of it, where nothing can have happened."""

    state: State


class Renew(msgspec.Struct, frozen=True):
    """The owner is still there."""

    fence: int
    lease_ns: int


class Take(msgspec.Struct, frozen=True):
    """Somebody looks after a slot whose owner may be gone."""

    lease_ns: int | None


class Approve(msgspec.Struct, frozen=True):
    """A person agrees."""


class Deny(msgspec.Struct, frozen=True):
    """A person does not."""


class Supersede(msgspec.Struct, frozen=True):
    """Newer messages came first."""


class Tick(msgspec.Struct, frozen=True):
    """Time has passed."""


class Settle(msgspec.Struct, frozen=True):
    """An operator, or a probe, says what became of an unknown one."""

    happened: bool


class Undo(msgspec.Struct, frozen=True):
    """It is to be taken back."""

    lease_ns: int | None


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of the undo says how it ended."""

    fence: int
    done: bool


Event = (
    Submit
    | Start
    | Finish
    | Release
    | GiveUp
    | Renew
    | Take
    | Approve
    | Deny
    | Supersede
    | Tick
    | Settle
    | Undo
    | Undone
)


class Action(StrEnum):
    """What whoever brought the event has to do now."""

    RUN = "run"  # it is yours: write the intent and run it
    AGAIN = "again"  # it is yours, under a new fence: run it again, with the same downstream key
    PROBE = "probe"  # it is yours: ask whether it happened
    PARK = "park"  # nobody can tell: it is unknown now
    REPLAY = "replay"  # answer with what is on record
    FORGET = "forget"  # what is on record holds no longer: give its key to a new slot
    WAIT = "wait"  # somebody is at it
    ASK = "ask"  # a person decides first
    CONFLICT = "conflict"  # the key belongs to other arguments
    COMPENSATE = "compensate"  # it is yours: take it back
    REFUSE = "refuse"  # it is not yours, or it is too late
    NOTHING = "nothing"


class Step(msgspec.Struct, frozen=True):
    """The slot after an event, and what follows from it."""

    slot: Slot
    action: Action


def step(slot: Slot, event: Event, now_ns: int) -> Step:
    """What the event makes of the slot. An event that does not fit changes nothing."""
    match event:
        case Submit():
            return _submitted(slot, event, now_ns)
        case Take(lease_ns):
            return _taken(slot, lease_ns, now_ns)
        case Undo(lease_ns):
            return _undo(slot, lease_ns, now_ns)
        case Start() | Finish() | Release() | Renew() | Undone():
            return _told_by_its_owner(slot, event)
        case _:
            return _told(slot, event, now_ns)


def is_live(slot: Slot, now_ns: int) -> bool:
    """Whether its owner may still be at it. A missing lease means live; zero is a time."""
    return slot.state in OPEN and (slot.lease_ns is None or now_ns < slot.lease_ns)


def _told_by_its_owner(slot: Slot, event: Start | Finish | Release | Renew | Undone) -> Step:
    match event:
        case Start(fence):
            return _owned(slot, fence, State.STARTED, Action.RUN)
        case Renew(fence, lease_ns):
            if fence != slot.fence or slot.state not in OPEN:
                return Step(slot, Action.REFUSE)
            return Step(_with(slot, lease_ns=lease_ns), Action.NOTHING)
        case Finish():
            if event.state not in _ENDS:
                return Step(slot, Action.REFUSE)
            after = _owned(slot, event.fence, event.state, Action.NOTHING)
            if after.action is Action.REFUSE:
                return after
            return Step(_with(after.slot, permanent=event.permanent), after.action)
        case Release():
            return _released(slot, event)
        case Undone():
            state = State.COMPENSATED if event.done else State.COMPENSATION_FAILED
            return _owned(slot, event.fence, state, Action.NOTHING)


def _told(
    slot: Slot, event: GiveUp | Approve | Deny | Supersede | Tick | Settle, now_ns: int
) -> Step:
    waits = slot.state is State.WAITING
    match event:
        case Approve() if waits and not _is_over(slot, now_ns):
            return Step(_with(slot, approved=True), Action.NOTHING)
        case Deny() if waits:
            return Step(_with(slot, state=State.FAILED, permanent=True), Action.NOTHING)
        case Tick() if waits and _is_over(slot, now_ns):
            return Step(_with(slot, state=State.EXPIRED), Action.NOTHING)
        case Supersede() if slot.state in _UNTRIED:
            return Step(_with(slot, state=State.SUPERSEDED), Action.NOTHING)
        case Settle(happened) if slot.state is State.UNKNOWN:
            state = State.SUCCEEDED if happened else State.FAILED
            return Step(_with(slot, state=state), Action.NOTHING)
        case GiveUp(state) if slot.state is State.RELEASED and state in _NOT_BEGUN:
            after = State.UNKNOWN if slot.tried else state
            return Step(_with(slot, state=after), Action.NOTHING)
        case Tick():
            return Step(slot, Action.NOTHING)
        case _:
            return Step(slot, Action.REFUSE)


def _submitted(slot: Slot, event: Submit, now_ns: int) -> Step:
    if slot.state in _NEW:
        return _claimed(slot, event.lease_ns, Action.RUN) if event.may_start else _ask(slot)
    if slot.state in _VOID or (slot.state not in _KEPT and _is_over(slot, now_ns)):
        return Step(slot, Action.FORGET)
    if slot.digest != event.digest:
        return Step(slot, Action.CONFLICT)
    if slot.state is State.WAITING:
        if not (slot.approved and event.may_start):
            return _ask(slot)
        return _claimed(_with(slot, approved=False, agreed=True), event.lease_ns, Action.RUN)
    if slot.state in {State.CLAIMED, State.STARTED, State.RELEASED}:
        return _gone_on(slot, event, now_ns)
    if slot.state is State.UNKNOWN and slot.recovery is Recovery.KEYED:
        # The far side need not know a key for longer than we do.
        return Step(slot, Action.REPLAY) if _is_over(slot, now_ns) else _asked_again(slot, event)
    gives_back = (slot.state is State.FAILED and not slot.permanent) or (
        # Whatever became of it, running it again equals running it once.
        slot.state is State.UNKNOWN and slot.recovery is Recovery.AGAIN
    )
    return Step(slot, Action.FORGET if gives_back else Action.REPLAY)


def _gone_on(slot: Slot, event: Submit, now_ns: int) -> Step:
    """Somebody is at it, or was."""
    if slot.state is State.RELEASED:
        may_start = event.may_start or slot.agreed
        return _claimed(slot, event.lease_ns, _lost(slot)) if may_start else Step(slot, Action.ASK)
    if is_live(slot, now_ns) or not _may_go_on(slot, event):
        return Step(slot, Action.WAIT)
    return _taken(slot, event.lease_ns, now_ns)


def _asked_again(slot: Slot, event: Submit) -> Step:
    """Nobody here knows its end, but the far side knows it by its key: twice there is once."""
    if not (event.may_start or slot.agreed):
        return Step(slot, Action.REPLAY)
    return _claimed(_with(slot, expires_ns=None), event.lease_ns, Action.AGAIN)


def _may_go_on(slot: Slot, event: Submit) -> bool:
    """Whether a duplicate may deal with a lost one; if not, whoever looks after those does."""
    action = _lost(slot)
    if action in {Action.RUN, Action.AGAIN}:
        return event.may_start or slot.agreed
    return action is not Action.PROBE


def _taken(slot: Slot, lease_ns: int | None, now_ns: int) -> Step:
    """Claim first, then act. Of two who come at once, the store lets one raise the fence."""
    if slot.state is State.COMPENSATING:
        return _undo(slot, lease_ns, now_ns)
    if slot.state not in OPEN or is_live(slot, now_ns):
        return Step(slot, Action.REFUSE)
    return _claimed(slot, lease_ns, _lost(slot))


def _lost(slot: Slot) -> Action:
    """What to do about a slot whose owner is gone."""
    if not slot.tried:
        return Action.RUN
    match slot.recovery:
        case Recovery.AGAIN | Recovery.KEYED:
            return Action.AGAIN
        case Recovery.PROBED:
            return Action.PROBE
        case Recovery.PARK:
            return Action.PARK


def _claimed(slot: Slot, lease_ns: int | None, action: Action) -> Step:
    after = _with(slot, state=State.CLAIMED, fence=slot.fence + 1, lease_ns=lease_ns)
    if action is Action.PARK:
        # Nobody is at it any more.
        after = _with(after, state=State.UNKNOWN, lease_ns=None)
    return Step(after, action)


def _owned(slot: Slot, fence: int, state: State, action: Action) -> Step:
    if fence != slot.fence or state not in MOVES[slot.state]:
        return Step(slot, Action.REFUSE)
    return Step(_with(slot, state=state, tried=slot.tried or state is State.STARTED), action)


def _released(slot: Slot, event: Release) -> Step:
    """Where an earlier owner may have begun, only what can bear that is run again."""
    after = _owned(slot, event.fence, State.RELEASED, Action.NOTHING)
    bears = slot.recovery in {Recovery.AGAIN, Recovery.KEYED}
    if after.action is Action.REFUSE or (event.doubt and not bears):
        return Step(slot, Action.REFUSE)
    return Step(_with(after.slot, tried=event.doubt, lease_ns=None), Action.NOTHING)


def _undo(slot: Slot, lease_ns: int | None, now_ns: int) -> Step:
    if slot.state is State.COMPENSATED:
        return Step(slot, Action.REPLAY)
    if State.COMPENSATING not in MOVES[slot.state]:
        return Step(slot, Action.REFUSE)
    if is_live(slot, now_ns):
        return Step(slot, Action.WAIT)
    after = _with(slot, state=State.COMPENSATING, fence=slot.fence + 1, lease_ns=lease_ns)
    return Step(after, Action.COMPENSATE)


def _ask(slot: Slot) -> Step:
    return Step(_with(slot, state=State.WAITING), Action.ASK)


def _is_over(slot: Slot, now_ns: int) -> bool:
    return slot.expires_ns is not None and now_ns >= slot.expires_ns


def _with(slot: Slot, **changes: object) -> Slot:
    return msgspec.structs.replace(slot, **changes)
