"""What a report says of one effect: why it was not begun with, and how its compensation ended."""

from toolgate.call import Output
from toolgate.errors import (
    InProgress,
    PermissionDenied,
    ToolgateError,
    ToolNotFound,
    Unauthenticated,
)
from toolgate.executor.aftercare.report import Item, Result
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.machine import Action
from toolgate.ledger.state import OPEN, State
from toolgate.spec.effect import Effect

_DONE = frozenset({State.SUCCEEDED, State.COMPENSATION_FAILED, State.COMPENSATING})
_NEVER = "It never happened: there is nothing to take back."


def impossible(entry: Entry) -> Item | None:
    """Why there is nothing to begin with."""
    match entry.state:
        case State.UNKNOWN:
            told = "Nobody knows whether it happened. Settle it first, or have it settled."
            return item(entry, "cannot", told)
        case state if state in OPEN - {State.COMPENSATING}:
            return item(entry, "in_progress", "It is still running.")
        case state if state not in _DONE:
            return item(entry, "cannot", _NEVER, stands=False)
        case _ if entry.undo_of:
            return item(entry, "cannot", "It takes another call back.")
        case _ if entry.effect is Effect.IRREVERSIBLE:
            return item(entry, "cannot", f"{entry.tool!r} is irreversible.")
        case _ if entry.effect is not Effect.COMPENSATABLE:
            return item(entry, "cannot", f"{entry.tool!r} has no compensation.")
        case _:
            return None


def not_begun(entry: Entry, begun: Begun) -> Item:
    """Why the ledger did not let it be begun with."""
    if begun.action is Action.WAIT:
        return item(entry, "in_progress", "Somebody else is taking it back.")
    if begun.entry.undo_until_ns is not None:
        return item(entry, "expired", "The time to take it back is over.")
    return item(entry, "cannot", f"It is {begun.entry.state} now.")


def outcome(entry: Entry, output: Output) -> Item:
    """How the compensation that was called has ended."""
    if output.ok:
        return item(entry, "undone", undo_call_id=output.call_id, stands=False)
    error = output.error
    reason = output.status if error is None else f"{error.code}: {error.message}"
    if output.status == "pending_approval":
        approval = "" if error is None else str(error.details.get("approval_id", ""))
        return item(entry, "pending_approval", reason, output.call_id, approval)
    return item(entry, "failed", reason, output.call_id)


def refusal(error: ToolgateError) -> Result:
    """What became of a compensation that was not run, or not to its end."""
    if isinstance(error, InProgress):
        return "in_progress"
    refused = isinstance(error, (PermissionDenied, ToolNotFound, Unauthenticated))
    return "refused" if refused else "failed"


def item(
    entry: Entry,
    result: Result,
    reason: str = "",
    undo_call_id: str = "",
    approval_id: str = "",
    *,
    stands: bool = True,
) -> Item:
    """One line of the report."""
    return Item(
        call_id=entry.call_id,
        tool=entry.tool,
        result=result,
        reason=reason,
        undo_call_id=undo_call_id,
        approval_id=approval_id,
        stands=stands,
    )
