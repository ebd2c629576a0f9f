"""What stands around calls that come together: who they are for, and in which turn."""

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from toolgate.call import Turn
from toolgate.caller import NO_CONTEXT, Caller
from toolgate.errors import InvalidRequest
from toolgate.server.calls import read_turn
from toolgate.server.context import read_context, read_session
from toolgate.server.request import Request
from toolgate.tenancy.names import nearest

_AROUND = ("turn", "session", "context")


class Envelope(NamedTuple):
    """The caller, in the context that the body names, and the turn."""

    caller: Caller
    turn: Turn | None


def read_envelope(request: Request, body: dict[str, Any], fields: Collection[str]) -> Envelope:
    """Turn, session and context; `InvalidRequest` for a field that is not known."""
    known = (*fields, *_AROUND)
    for field in body:
        if field not in known:
            raise InvalidRequest(
                f"{field[:60]!r} is not known; this address takes {', '.join(known)}."
                + nearest(field, known)
            )
    context, session = read_context(body.get("context")), read_session(body.get("session"))
    caller = request.caller
    if context is not NO_CONTEXT or session:
        caller = msgspec.structs.replace(caller, context=context, session=session)
    return Envelope(caller, read_turn(body.get("turn")))


def flag(body: dict[str, Any], name: str) -> bool:
    """True or false; false where it is left out."""
    given = body.get(name, False)
    if type(given) is not bool:
        raise InvalidRequest(f"{name!r} is true or false.")
    return given
