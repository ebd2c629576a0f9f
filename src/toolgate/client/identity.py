"""Who a key speaks for. What a program says beyond it is refused here, and never sent."""

from typing import Any

import msgspec

from toolgate.call import Turn
from toolgate.caller import NO_CONTEXT, Caller, Context
from toolgate.errors import InvalidRequest
from toolgate.spec.effect import CallerKind

_HOOKS = ("has_pending_messages", "absorb_messages", "emit")


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of a key, and how it answers."""

    tenant: str
    role: str
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    most_calls: int = 10
    structured_tool_output: bool = True

    def caller(self) -> Caller:
        """The caller that calls with this key are made by."""
        return Caller(
            tenant=self.tenant,
            agent=self.agent,
            user=self.user,
            persona=self.persona,
            roles=self.roles,
        )


def own_caller(own: Caller, given: Caller | None) -> Caller:
    """The key's caller in the given one's session and context, or `InvalidRequest`.

    A user, a persona or roles may be left out: they are the key's. Another one would be believed to
    hold, and does not.
    """
    if given is None:
        return own
    if type(given) is not Caller:
        raise InvalidRequest("A caller is a Caller(tenant=…, agent=…); leave it out for the key's.")
    for field in ("tenant", "agent"):
        _same(field, getattr(own, field), getattr(given, field))
    for field in ("user", "persona", "roles"):
        if getattr(given, field):
            _same(field, getattr(own, field), getattr(given, field))
    if given.delegation or given.kind is not CallerKind.DIRECT:
        raise InvalidRequest(
            "A delegated task does not travel to a server: make a key for the agent that has it, "
            "and narrow it with Context(allow=…, deny=…)."
        )
    return msgspec.structs.replace(own, session=given.session, context=given.context)


def _same(field: str, own: object, given: object) -> None:
    if own != given:
        raise InvalidRequest(
            f"The key speaks for the {field} {_shown(own)}, and not for {_shown(given)}. "
            f"Nothing was sent: leave the caller out, or connect with a key of that {field}."
        )


def _shown(value: object) -> str:
    return repr(value) if value else "'' (none)"


def sent_turn(turn: Turn | None) -> dict[str, str] | None:
    """A turn as it travels: functions of this process cannot be called from there."""
    if turn is None:
        return None
    for name in _HOOKS:
        if getattr(turn, name) is not None:
            raise InvalidRequest(
                f"{name!r} of a Turn is a function of this process, and a server cannot call it. "
                "Nothing was sent: leave it out; `gate.events()` tells of side effects."
            )
    return {"group": turn.group, "id": turn.id} if turn.id else {"group": turn.group}


def sent_task(caller: Caller) -> dict[str, Any]:
    """Session and context, as fields of a body."""
    told: dict[str, Any] = {}
    if caller.session:
        told["session"] = caller.session
    if caller.context != NO_CONTEXT:
        told["context"] = sent_context(caller.context)
    return told


def sent_context(context: Context) -> dict[str, Any]:
    """A context as JSON."""
    return {
        "read_only": context.read_only,
        "no_web": context.no_web,
        "allow": None if context.allow is None else list(context.allow),
        "deny": list(context.deny),
        "facts": dict(context.facts),
    }
