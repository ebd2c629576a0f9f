"""What each role opens: one table, which every door asks."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from toolgate.errors import PermissionDenied
from toolgate.tenancy.keys import Key, Role


class Right(StrEnum):
    """Something that a key opens, within its reach: an admin's reaches every tenant, others one."""

    # See, call and take back tools, as the agent that the key names.
    CALL = "call"
    # Ask why about any caller.
    EXPLAIN = "explain"
    # See what persons are asked, and decide it.
    APPROVE = "approve"
    # See calls, usage, the audit, and the rules that they follow.
    LOOK = "look"
    # Settle calls whose end is unknown, run them again, take back what agents did.
    SETTLE = "settle"
    # Change agents, flags, layers, relations; see, make and revoke keys.
    RULE = "rule"
    # What holds in every tenant: plans, budgets, limits, personas, policies, and the numbers.
    HOUSE = "house"


OPENS: Mapping[Role, frozenset[Right]] = MappingProxyType(
    {
        Role.ADMIN: frozenset(Right),
        Role.TENANT_ADMIN: frozenset(Right) - {Right.HOUSE},
        Role.OPERATOR: frozenset({Right.EXPLAIN, Right.APPROVE, Right.LOOK, Right.SETTLE}),
        Role.APPROVER: frozenset({Right.APPROVE}),
        Role.AGENT: frozenset({Right.CALL}),
    }
)


def roles(*rights: Right) -> frozenset[Role]:
    """The roles that have any of these."""
    return frozenset(role for role, opens in OPENS.items() if opens & set(rights))


def may(key: Key, right: Right) -> bool:
    """Whether this key opens it."""
    return right in OPENS[key.role]


def not_for(key: Key) -> PermissionDenied:
    """The same wherever it is found out, and whatever was asked for."""
    return PermissionDenied(
        f"This is not for a key with the role {key.role}; use one that opens it.",
        phase="door",
        reason="the key's role",
    )
