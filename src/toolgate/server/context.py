"""The task that a request belongs to. Whoever sends it can only take tools away from themselves."""

from typing import Any

import msgspec

from toolgate.call import NO_CONTEXT, Context
from toolgate.errors import InvalidRequest

_FLAGS = {"true": True, "false": False, "": True}


class _Context(msgspec.Struct, forbid_unknown_fields=True):
    read_only: bool = False
    no_web: bool = False
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    facts: dict[str, str | int | float | bool] = {}


def read_context(given: Any) -> Context:
    """`{read_only, no_web, allow, deny, facts}`; a misspelt field would be believed to hold."""
    if given is None:
        return NO_CONTEXT
    try:
        read = msgspec.convert(given, _Context)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"'context' does not fit: {error}. It has read_only, no_web, allow, deny and facts."
        ) from None
    return Context(
        read_only=read.read_only,
        no_web=read.no_web,
        allow=read.allow,
        deny=read.deny,
        facts=tuple(sorted(read.facts.items())),
    )


def flag(name: str, given: str | None) -> bool:
    """A flag of the query: `?read_only=true`."""
    if given is None:
        return False
    if given not in _FLAGS:
        raise InvalidRequest(f"{name!r} is true or false.")
    return _FLAGS[given]
