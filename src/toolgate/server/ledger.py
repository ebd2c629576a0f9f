"""What a caller did, and taking it back: `/v1/ledger`, `/v1/calls/{id}`, `/v1/undo`."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from toolgate import clock
from toolgate.errors import CallNotFound, InvalidRequest
from toolgate.executor.aftercare import shown
from toolgate.executor.aftercare.found import Found
from toolgate.executor.people import presence
from toolgate.executor.recording.claim import check_wait
from toolgate.ledger.history import owner_of
from toolgate.ledger.ledger import Which
from toolgate.ledger.state import State
from toolgate.server.cursor import made, opened
from toolgate.server.envelope import read_envelope
from toolgate.server.hangup import listening
from toolgate.server.request import Request
from toolgate.server.waiting import waiting

_MOST = 500
# What another node does to a call is seen after so long.
_LOOK_S = 0.5
_WHAT = ("call_id", "turn_group", "chain")
_MOST_REASON = 2_000


async def list_calls(request: Request) -> dict[str, Any]:
    """Its own side effects, the newest first; `next` is what to send as `before` for more."""
    query = request.query
    which = Which(
        tenant=request.caller.tenant,
        scope=owner_of(request.caller),
        turn_group=query.get("turn_group", ""),
        tool=query.get("tool", ""),
        states=read_states(query),
        before=read_before(request),
        limit=request.number("limit", default=50, most=_MOST),
    )
    found = await request.gate.ledger.search(which)
    return page(request, found, which.limit)


async def show_call(request: Request) -> dict[str, Any]:
    """One of its own calls; one of another looks as if it were not there."""
    [call_id] = request.names
    wait_s = _wait(request)
    call = await _own(request, call_id)
    if call.is_open and wait_s:
        with waiting(request.gate).one(request.key):
            call = await _ended(request, call, wait_s)
    return call.shown()


async def _own(request: Request, call_id: str) -> Found:
    call = await request.gate.find(request.caller.tenant, call_id)
    if not call.is_of(request.caller):
        raise CallNotFound(call_id)
    return call


async def _ended(request: Request, call: Found, wait_s: float) -> Found:
    """The call once it is over, or as it is when the time is up or nobody waits any more.

    What happens here is heard of; what another node does is looked for.
    """
    [call_id] = request.names
    until_ns = clock.monotonic_ns() + int(wait_s * 1e9)
    news = request.gate.events(request.caller.tenant)
    async with listening(request.receive):
        while call.is_open and not presence.has_left():
            left_s = (until_ns - clock.monotonic_ns()) / 1e9
            if left_s <= 0:
                break
            with contextlib.suppress(TimeoutError, StopAsyncIteration):
                async with asyncio.timeout(min(left_s, _LOOK_S)):
                    while (await anext(news)).call_id != call_id:
                        pass
            # A key that was revoked meanwhile hears nothing of how it ended.
            await request.confirm()
            call = await _own(request, call_id)
    return call


def _wait(request: Request) -> float:
    given = request.query.get("wait_s")
    if given is None:
        return 0.0
    try:
        return check_wait(float(given) if given.isascii() else given)
    except ValueError:
        return check_wait(given)


async def run_undo(request: Request) -> dict[str, Any]:
    """`{call_id}`, `{turn_group}` or `{chain}`, and a `reason`.

    Taking back is once by itself, whatever key comes with it.
    """
    body = await request.body()
    caller, _turn = read_envelope(request, body, (*_WHAT, "reason"))
    report = await request.gate.undo(
        caller=caller,
        call_id=text(body, "call_id"),
        turn_group=text(body, "turn_group"),
        chain=text(body, "chain"),
        reason=text(body, "reason", most=_MOST_REASON) or "",
    )
    return report.to_machine()


def page(request: Request, found: Any, limit: int) -> dict[str, Any]:
    """A list, and where it goes on."""
    following = made(request, found[-1].call_id) if len(found) == limit else None
    return {"calls": [shown.summary(entry) for entry in found], "next": following}


def read_before(request: Request) -> str:
    """The call behind which a list goes on: by `cursor`, or by its id as `before`."""
    last, before = opened(request, str), request.query.get("before", "")
    if last is not None and before:
        raise InvalidRequest("'cursor' and 'before' say the same thing; send one of them.")
    if before and not before.startswith("call_"):
        last = opened(request, str, "before")
    return before if last is None else last


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
