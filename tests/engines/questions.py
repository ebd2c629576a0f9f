"""Inputs for policies, in few words."""

from typing import Any

from toolgate.caller import Action, Caller
from toolgate.gate.document import question, tool_document
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import World

ME = Caller(tenant="acme", agent="billing", user="u1", persona="clerk")


def tool(name: str, *, effect: Effect = Effect.PURE, tags: tuple[str, ...] = ()) -> ToolSpec:
    return ToolSpec(name=name, effect=effect, tags=tags)


def asked(
    action: Action,
    name: str | ToolSpec = "get_order",
    *,
    caller: Caller = ME,
    may_add: bool = False,
    **parts: Any,
) -> dict[str, Any]:
    spec = tool(name) if isinstance(name, str) else name
    document = question(action, caller, World(), unlisted_may_add=may_add)
    document["tool"] = tool_document(spec)
    if action is Action.REQUEST:
        document["args"] = {}
    return {**document, **parts}


def listed(caller: Caller = ME, **parts: Any) -> dict[str, Any]:
    """What a list is asked with: no tool, no arguments."""
    return {**question(Action.VIEW, caller, World(), unlisted_may_add=False), **parts}
