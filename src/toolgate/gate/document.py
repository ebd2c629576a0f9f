"""What a policy is asked: `input`, built from values of ours. Every field is in the reference."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from toolgate.caller import Action, Caller
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import World

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def tool_document(spec: ToolSpec) -> dict[str, Any]:
    """A tool as a policy sees it. The registry has let it pass, so it is enabled."""
    return {
        "name": spec.name,
        "effect": spec.effect.value,
        "side_effects": list(spec.side_effects),
        "tags": list(spec.tags),
        "category": spec.category,
        "categories": list(spec.categories),
        "permissions": list(spec.permissions),
        "provider": spec.provider,
        "destructive": spec.destructive,
        "requires_confirmation": spec.requires_confirmation,
        "requires_approval": spec.requires_approval,
        "enabled": True,
        "source": spec.origin.kind,
    }


def caller_document(caller: Caller) -> dict[str, Any]:
    """A caller as a policy sees it."""
    return {
        "tenant": caller.tenant,
        "agent": caller.agent,
        "user": caller.user,
        "persona": caller.persona,
        "roles": list(caller.roles),
        "session": caller.session,
        "delegation": [msgspec.to_builtins(step) for step in caller.delegation],
    }


def question(
    action: Action, caller: Caller, world: World, *, unlisted_may_add: bool
) -> dict[str, Any]:
    """`input` but for the tool and what differs from call to call."""
    context = caller.context
    return {
        "action": action.value,
        "caller": caller_document(caller),
        "persona": {"can_add_tools": world.persona(caller.persona).can_add_tools},
        "context": {
            "read_only": context.read_only,
            "no_web": context.no_web,
            "facts": dict(context.facts),
        },
        "settings": {"unlisted_personas_may_add": unlisted_may_add},
    }


def time_document(at: datetime) -> dict[str, Any]:
    """A moment as a policy sees it; UTC."""
    at = at.astimezone(UTC)
    return {
        "unix": at.timestamp(),
        "iso": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "weekday": _WEEKDAYS[at.weekday()],
        "hour": at.hour,
        "minute": at.minute,
    }
