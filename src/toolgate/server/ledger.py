"""What a caller did, and taking it back: `/v1/ledger`, `/v1/calls/{id}`, `/v1/undo`."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import CallNotFound, InvalidRequest
from toolgate.executor.aftercare import recalled, shown
from toolgate.ledger.history import owner_of
from toolgate.ledger.ledger import Which
from toolgate.ledger.state import State
from toolgate.server.envelope import read_envelope
from toolgate.server.request import Request

_MOST = 500
_WHAT = ("call_id", "turn_group", "chain")
_MOST_REASON = 2_000


async def list_calls(request: Request) -> dict[str, Any]:
    """Its own side effects, the newest first; `next` is what to send as `before` for more."""
    request.takes("turn_group", "state", "tool", "limit", "before")
    query = request.query
    which = Which(
        tenant=request.caller.tenant,
        scope=owner_of(request.caller),
        turn_group=query.get("turn_group", ""),
        tool=query.get("tool", ""),
        states=read_states(query),
        before=query.get("before", ""),
        limit=request.number("limit", default=50, most=_MOST),
    )
    found = await request.gate.ledger.search(which)
    return page(found, which.limit)


async def show_call(request: Request, call_id: str) -> dict[str, Any]:
    """One of its own calls; one of another looks as if it were not there."""
    request.takes()
    entry = await request.gate.journal.find(request.caller.tenant, call_id)
    if entry is None or not recalled.is_of(entry, request.caller):
        raise CallNotFound(call_id)
    return shown.whole(entry)


async def run_undo(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """`{call_id}`, `{turn_group}` or `{chain}`, and a `reason`."""
    caller, _turn = read_envelope(request, body, (*_WHAT, "reason"))
    report = await request.gate.undo(
        caller=caller,
        call_id=text(body, "call_id"),
        turn_group=text(body, "turn_group"),
        chain=text(body, "chain"),
        reason=text(body, "reason", most=_MOST_REASON) or "",
    )
    return report.to_machine()


def page(found: Any, limit: int) -> dict[str, Any]:
    """A list, and where it goes on."""
    following = found[-1].call_id if len(found) == limit else None
    return {"calls": [shown.summary(entry) for entry in found], "next": following}


def read_states(query: Mapping[str, str]) -> frozenset[State]:
    """`?state=unknown` or `?state=succeeded,compensated`."""
    given = query.get("state", "")
    try:
        return frozenset(State(word) for word in given.split(",") if word)
    except ValueError:
        raise InvalidRequest(
            f"'state' is one of: {', '.join(State)}; several are parted by commas."
        ) from None


def text(body: Mapping[str, Any], name: str, *, most: int = 256) -> str | None:
    """A text, or nothing."""
    given = body.get(name)
    if given is not None and (type(given) is not str or len(given) > most):
        raise InvalidRequest(f"{name!r} is a text of at most {most:,} characters.")
    return given
