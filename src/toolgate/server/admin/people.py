"""`/v1/admin/`: tenants, agents, flags and activations."""

from typing import Any

import msgspec

from toolgate.errors import PermissionDenied
from toolgate.server.admin.desk import (
    Desk,
    SignedOfTenant,
    Some,
    SomeOfTenant,
    beyond,
    noted,
)
from toolgate.tenancy.capsule import Capsule, Mode, NewerMessages
from toolgate.tenancy.keys import Key, Role


class Flag(SignedOfTenant, kw_only=True):
    """`enabled` is true, false, or null, which takes the flag back."""

    tool: str
    enabled: bool | None


class Agent(SignedOfTenant):
    """What the agent's capsule starts from, and what it does about newer messages."""

    mode: Mode | None = None
    newer_messages: NewerMessages | None = None


class Activation(SignedOfTenant, kw_only=True):
    """One tool in an agent's capsule."""

    agent: str
    tool: str
    enabled: bool = True
    overrides: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


async def list_tenants(desk: Desk, _: Some) -> Any:
    """`GET tenants?limit=&cursor=`."""
    own = desk.tenant
    tenants = desk.gate.tenancy.world.tenants
    found, following = desk.page([one for one in sorted(tenants) if own in {"", one}], str)
    return {
        "tenants": [{"id": name, "agents": len(tenants[name].capsules)} for name in found],
        "next": following,
    }


async def list_agents(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET agents?tenant=&limit=&cursor=`."""
    capsules = desk.gate.tenancy.world.tenant(desk.need_tenant()).capsules
    found, following = desk.page(sorted(capsules.items()), _name)
    return {
        "agents": [shown(agent, capsule) for agent, capsule in found],
        "next": following,
    }


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def shown(agent: str, capsule: Capsule) -> dict[str, Any]:
    """An agent and its capsule, as others are told of them."""
    return {
        "id": agent,
        "mode": capsule.mode,
        "newer_messages": capsule.newer_messages,
        "tools": {
            tool: {"enabled": one.enabled, "overrides": dict(one.overrides)}
            for tool, one in sorted(capsule.activations.items())
        },
    }


async def put_agent(desk: Desk, given: Agent) -> Any:
    """`PUT agents/{id}` `{tenant, mode, newer_messages}`."""
    tenant, before = desk.need_tenant(), desk.gate.tenancy.world
    [agent] = desk.names
    if given.newer_messages is not None:
        await desk.tenancy.set_newer_messages(tenant, agent, given.newer_messages)
    if given.mode is not None or given.newer_messages is None:
        await desk.tenancy.set_agent(tenant, agent, given.mode or Mode.ALL)
    capsule = desk.gate.tenancy.world.capsule(tenant, agent)
    answer = {
        "id": agent,
        "tenant": tenant,
        "mode": capsule.mode,
        "newer_messages": capsule.newer_messages,
    }
    return noted(answer, desk.notes(before, tenant))


async def remove_agent(desk: Desk, _: SignedOfTenant) -> Any:
    """`DELETE agents/{id}?tenant=`."""
    tenant = desk.need_tenant()
    # Its keys go with it, and who runs a tenant has no say over the house's.
    keys = desk.gate.tenancy.world.keys.values()
    held = any(key.role is Role.ADMIN for key in keys if _is_of(key, tenant, desk.names[0]))
    if held and not desk.has_all:
        raise beyond()
    await desk.tenancy.remove_agent(tenant, desk.names[0])
    return {"id": desk.names[0], "tenant": tenant, "removed": True}


def _is_of(key: Key, tenant: str, agent: str) -> bool:
    return (key.tenant, key.agent) == (tenant, agent)


async def list_flags(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET flags?tenant=&limit=&cursor=`: a page is so many tenants."""
    world = desk.gate.tenancy.world
    own = desk.tenant
    flagged = [
        (name, tenant.flags)
        for name, tenant in sorted(world.tenants.items())
        if tenant.flags and own in {"", name}
    ]
    found, following = desk.page(flagged, _name)
    return {
        "everyone": dict(world.everyone.flags),
        "tenants": {name: dict(flags) for name, flags in found},
        "next": following,
    }


async def put_flag(desk: Desk, given: Flag) -> Any:
    """`PUT flags` `{tool, enabled, tenant?}`."""
    tenant = desk.tenant
    if given.enabled is not False and not desk.has_all:
        # What was switched off for a tenant, or for everyone, its own admin cannot switch on.
        raise PermissionDenied(
            "The key of one tenant can switch a tool off, not on again; use an admin's key.",
            phase="door",
            reason="the key's role",
        )
    if not given.enabled:
        await desk.need_on_record(tenant)
    before = desk.gate.tenancy.world
    if tenant:
        await desk.tenancy.set_tenant_tool(tenant, given.tool, given.enabled)
    else:
        await desk.tenancy.set_tool(given.tool, given.enabled)
    answer = {"tool": given.tool, "tenant": tenant, "enabled": given.enabled}
    return noted(answer, desk.notes(before, tenant))


async def put_activation(desk: Desk, given: Activation) -> Any:
    """`PUT activations` `{tenant, agent, tool, enabled, overrides}`."""
    tenant = desk.need_tenant()
    if not given.enabled:
        await desk.need_on_record(tenant, given.agent)
    before = desk.gate.tenancy.world
    await desk.tenancy.activate(
        tenant, given.agent, given.tool, enabled=given.enabled, overrides=given.overrides
    )
    answer = {
        "tenant": tenant,
        "agent": given.agent,
        "tool": given.tool,
        "enabled": given.enabled,
        "overrides": given.overrides,
    }
    return noted(answer, desk.notes(before, tenant, given.agent))
