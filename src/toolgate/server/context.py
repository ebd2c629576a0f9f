"""The task that a request belongs to. Whoever sends it can only take tools away from themselves."""

from typing import Any

import msgspec

from toolgate.caller import NO_CONTEXT, Context
from toolgate.errors import InvalidRequest
from toolgate.identity import printable
from toolgate.server import fields
from toolgate.tenancy.layer import check_selector

_LONGEST_SESSION = 256
_FLAGS = {"true": True, "false": False, "": True}
_MOST_TOLD = 200


def read_context(given: Any) -> Context:
    """`{read_only, no_web, allow, deny, facts}`; a misspelt field would be believed to hold."""
    if given is None:
        return NO_CONTEXT
    try:
        read = msgspec.convert(given, fields.Context)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"'context' does not fit: {str(error)[:_MOST_TOLD]}. "
            "It has read_only, no_web, allow, deny and facts."
        ) from None
    selectors = (*(read.allow or ()), *read.deny)
    for selector in selectors:
        check_selector(selector)
    return Context(
        read_only=read.read_only,
        no_web=read.no_web,
        allow=read.allow,
        deny=read.deny,
        facts=tuple(sorted(read.facts.items())),
    )


def read_session(given: Any) -> str:
    """The session that a request names."""
    if given is None:
        return ""
    if not isinstance(given, str) or not given or len(given) > _LONGEST_SESSION:
        raise InvalidRequest(f"'session' is a text of 1 to {_LONGEST_SESSION} characters.")
    printable("call", session=given)
    return given


def flag(name: str, given: str | None) -> bool:
    """A flag of the query: `?read_only=true`."""
    if given is None:
        return False
    if given not in _FLAGS:
        raise InvalidRequest(f"{name!r} is true or false.")
    return _FLAGS[given]
