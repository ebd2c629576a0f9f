"""`/v1/admin/`: tenants, agents, flags, activations and keys."""

from typing import Any

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Key, Role


class _Flag(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    enabled: bool | None
    tenant: str = ""


class _Agent(msgspec.Struct, forbid_unknown_fields=True):
    mode: Mode = Mode.ALL
    tenant: str = ""


class _Activation(msgspec.Struct, forbid_unknown_fields=True):
    agent: str
    tool: str
    enabled: bool = True
    overrides: dict[str, Any] = {}
    tenant: str = ""


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    role: Role
    tenant: str = ""
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()


async def list_tenants(desk: Desk) -> Any:
    """`GET tenants`."""
    own = desk.tenant
    tenants = desk.gate.tenancy.world.tenants
    return {
        "tenants": [
            {"id": name, "agents": len(tenants[name].capsules)}
            for name in sorted(tenants)
            if not own or name == own
        ]
    }


async def put_tenant(desk: Desk) -> Any:
    """`PUT tenants/{id}`."""
    desk.need_all()
    await desk.tenancy.add_tenant(desk.parts[0])
    return {"id": desk.parts[0]}


async def list_agents(desk: Desk) -> Any:
    """`GET agents?tenant=`."""
    capsules = desk.gate.tenancy.world.tenant(desk.need_tenant()).capsules
    return {
        "agents": [
            {
                "id": agent,
                "mode": capsule.mode,
                "tools": {
                    tool: {"enabled": one.enabled, "overrides": dict(one.overrides)}
                    for tool, one in sorted(capsule.activations.items())
                },
            }
            for agent, capsule in sorted(capsules.items())
        ]
    }


async def put_agent(desk: Desk) -> Any:
    """`PUT agents/{id}` `{tenant, mode}`."""
    given = desk.read(_Agent)
    tenant = desk.need_tenant()
    await desk.tenancy.set_agent(tenant, desk.parts[0], given.mode)
    return {"id": desk.parts[0], "tenant": tenant, "mode": given.mode}


async def remove_agent(desk: Desk) -> Any:
    """`DELETE agents/{id}?tenant=`."""
    tenant = desk.need_tenant()
    await desk.tenancy.remove_agent(tenant, desk.parts[0])
    return {"id": desk.parts[0], "tenant": tenant, "removed": True}


async def list_flags(desk: Desk) -> Any:
    """`GET flags?tenant=`."""
    world = desk.gate.tenancy.world
    own = desk.tenant
    flags = {name: dict(tenant.flags) for name, tenant in world.tenants.items() if tenant.flags}
    return {
        "everyone": dict(world.everyone.flags),
        "tenants": {name: found for name, found in flags.items() if not own or name == own},
    }


async def put_flag(desk: Desk) -> Any:
    """`PUT flags` `{tool, enabled, tenant?}`; `null` takes a flag back."""
    given = desk.read(_Flag)
    tenant = desk.tenant
    if tenant:
        await desk.tenancy.set_tenant_tool(tenant, given.tool, given.enabled)
    else:
        desk.need_all()
        await desk.tenancy.set_tool(given.tool, given.enabled)
    return {"tool": given.tool, "tenant": tenant, "enabled": given.enabled}


async def put_activation(desk: Desk) -> Any:
    """`PUT activations` `{tenant, agent, tool, enabled, overrides}`."""
    given = desk.read(_Activation)
    tenant = desk.need_tenant()
    await desk.tenancy.activate(
        tenant, given.agent, given.tool, enabled=given.enabled, overrides=given.overrides
    )
    return {"tenant": tenant, "agent": given.agent, "tool": given.tool, "enabled": given.enabled}


async def list_keys(desk: Desk) -> Any:
    """`GET keys?tenant=`: never a secret, and never a digest."""
    own = desk.tenant
    found = sorted(desk.gate.tenancy.world.keys.values(), key=lambda key: key.id)
    return {"keys": [_shown(key) for key in found if not own or key.tenant == own]}


async def add_key(desk: Desk) -> Any:
    """`POST keys`: the secret is in this answer and nowhere else."""
    given = desk.read(_Key)
    if given.role is Role.ADMIN:
        desk.need_all()
    fresh = await desk.tenancy.add_key(
        given.role,
        tenant=desk.need_tenant(),
        agent=given.agent,
        user=given.user,
        persona=given.persona,
        roles=given.roles,
    )
    return _shown(fresh.key) | {"secret": fresh.secret}


async def revoke_key(desk: Desk) -> Any:
    """`DELETE keys/{id}`."""
    own = desk.tenant
    found = [key for key in desk.gate.tenancy.world.keys.values() if key.id == desk.parts[0]]
    if own and not any(key.tenant == own for key in found):
        raise InvalidRequest(f"There is no key {desk.parts[0][:80]!r}; nothing was revoked.")
    await desk.tenancy.revoke_key(desk.parts[0])
    return {"id": desk.parts[0], "revoked": True}


def _shown(key: Key) -> dict[str, Any]:
    fields = ("id", "role", "tenant", "agent", "user", "persona", "roles")
    return {name: getattr(key, name) for name in fields}
