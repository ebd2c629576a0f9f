"""Who calls, for which task, and by whose word: what every decision is about."""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import cast

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.identity import plain, texts
from toolgate.spec.effect import CallerKind

_FACT = frozenset({str, int, float, bool})
_MOST_ROLES = 64
_MOST_STEPS = 32
# A context is remembered with what was decided in it.
_MOST_SELECTORS = 64
_MOST_TOLD = 4_096


class Action(StrEnum):
    """What a caller wants with a tool: to see it, to run it, to add it."""

    VIEW = "tool.view"
    REQUEST = "tool.request"
    ENABLE = "tool.enable"


def _selectors(of: str, allow: object, deny: object) -> None:
    for name, given in (("allow", allow), ("deny", deny)):
        if name == "allow" and given is None:
            continue
        listed = cast("tuple[object, ...]", given) if isinstance(given, tuple) else ("",)
        if any(type(one) is not str or not one for one in listed):
            raise InvalidRequest(
                f"{name!r} of a {of} is a tuple of tool names and selectors: ('group:read',)."
            )


def _is_fact(fact: object) -> bool:
    if type(fact) is not tuple or len(cast("tuple[object, ...]", fact)) != 2:
        return False
    name, value = cast("tuple[object, object]", fact)
    if type(name) is not str or type(value) not in _FACT:
        return False
    # No JSON has a word for it, and it is not even equal to itself.
    return not isinstance(value, float) or math.isfinite(value)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The task a call belongs to. It can only take tools away.

    `allow` and `deny` hold tool names and selectors such as `group:read`; `facts` is for policies.
    """

    read_only: bool = False
    no_web: bool = False
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    facts: tuple[tuple[str, str | int | float | bool], ...] = ()

    def __post_init__(self) -> None:
        """What is misspelt or of another type would be believed to hold."""
        if type(self.read_only) is not bool or type(self.no_web) is not bool:
            raise InvalidRequest("'read_only' and 'no_web' of a context are true or false.")
        _selectors("context", self.allow, self.deny)
        if type(self.facts) is not tuple or not all(map(_is_fact, self.facts)):
            raise InvalidRequest(
                "'facts' of a context are a tuple of texts with a text, number or flag: "
                "(('urgent', True),)."
            )
        told = sum(len(name) + len(str(value)) for name, value in self.facts)
        selectors = (*(self.allow or ()), *self.deny)
        if told > _MOST_TOLD or len(selectors) > _MOST_SELECTORS:
            raise InvalidRequest(
                f"A context holds at most {_MOST_SELECTORS} selectors, and facts of "
                f"{_MOST_TOLD:,} characters in all."
            )

    def __eq__(self, other: object) -> bool:
        """As a policy sees it, to which the facts 1, 1.0 and true are three."""
        if type(other) is not Context:
            return NotImplemented
        return self._told() == other._told()

    def __hash__(self) -> int:
        return hash((self.read_only, self.no_web, self.allow, self.deny, self.facts))

    def _told(self) -> tuple[object, ...]:
        kinds = [type(value) for _name, value in self.facts]
        return self.read_only, self.no_web, self.allow, self.deny, self.facts, kinds


class Delegation(msgspec.Struct, frozen=True, kw_only=True):
    """One step of delegation: the agent that handed its task on, and what it let go with it."""

    by: str
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """A delegation by nobody would narrow nothing."""
        plain("agent", self.by)
        _selectors("delegation", self.allow, self.deny)


NO_CONTEXT = Context()


class Caller(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Who calls, and for which task. A door makes it from what it has verified."""

    tenant: str
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    session: str = ""
    context: Context = NO_CONTEXT
    delegation: tuple[Delegation, ...] = ()
    # A chain sets it for its steps; what may run there is decided like everything else.
    kind: CallerKind = CallerKind.DIRECT
    # The id of the API key that it came by: once that is revoked, nothing is let through any more.
    key: str = ""
    # When what it came by ends, by the wall clock; 0: it does not, or its key says so.
    until_ns: int = 0

    def __post_init__(self) -> None:
        """Only names that an operator can set a flag on: `Acme` must not slip past `acme`'s."""
        plain("tenant", self.tenant)
        if self.agent:
            plain("agent", self.agent)
        texts("Caller", user=self.user, persona=self.persona, session=self.session, key=self.key)
        if type(self.roles) is not tuple or any(type(role) is not str for role in self.roles):
            raise InvalidRequest("The roles of a Caller are a tuple of texts: ('finance',).")
        if len(self.roles) > _MOST_ROLES:
            raise InvalidRequest(f"A Caller has at most {_MOST_ROLES} roles.")
        for role in self.roles:
            texts("Caller", roles=role)
        if type(self.context) is not Context:
            raise InvalidRequest("The context of a Caller is a Context(read_only=True).")
        if any(type(step) is not Delegation for step in self.delegation):
            raise InvalidRequest("The delegation of a Caller comes from `caller.delegate(…)`.")
        if len(self.delegation) > _MOST_STEPS:
            raise InvalidRequest(f"A task can be handed on {_MOST_STEPS} times, not more.")
        if type(self.kind) is not CallerKind:
            raise InvalidRequest("The kind of a Caller is a CallerKind; leave it out.")

    def delegate(
        self, agent: str, *, allow: Iterable[str] | None = None, deny: Iterable[str] = ()
    ) -> "Caller":
        """This caller's task in the hands of another agent, with at most the same tools."""
        step = Delegation(
            by=self.agent,
            allow=None if allow is None else tuple(allow),
            deny=tuple(deny),
        )
        return msgspec.structs.replace(self, agent=agent, delegation=(*self.delegation, step))
