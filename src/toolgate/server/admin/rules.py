"""`/v1/admin/`: layers, roles, personas, relations, policies, and the record of every change."""

from typing import Any

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk
from toolgate.tenancy.layer import Layer, Layers, Permissions

_MOST_RELATIONS = 10_000


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    reason: str = ""
    role: str = ""
    tenant: str = ""


class _Role(msgspec.Struct, forbid_unknown_fields=True):
    permissions: Permissions
    tenant: str = ""


class _Persona(msgspec.Struct, forbid_unknown_fields=True):
    can_add_tools: bool | None


class _Restriction(msgspec.Struct, forbid_unknown_fields=True):
    allowed: bool | None = False
    reason: str = ""


class _Relations(msgspec.Struct, forbid_unknown_fields=True):
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    tenant: str = ""


class _Module(msgspec.Struct, forbid_unknown_fields=True):
    text: str


async def list_layers(desk: Desk) -> Any:
    """`GET layers?tenant=`."""
    world = desk.gate.tenancy.world
    own = desk.tenant
    found = _layers("", world.everyone.layers)
    for name in sorted(world.tenants):
        if not own or name == own:
            found += _layers(name, world.tenants[name].layers)
    return {"layers": found}


async def put_layer(desk: Desk) -> Any:
    """`PUT layers/{name}` `{allow, deny, reason, role?, tenant?}`."""
    given = desk.read(_Layer)
    layer = Layer(allow=given.allow, deny=given.deny, reason=given.reason)
    tenant = _wherever(desk)
    await desk.tenancy.set_layer(desk.parts[0], layer, role=given.role, tenant=tenant)
    return {"name": desk.parts[0], "role": given.role, "tenant": tenant}


async def remove_layer(desk: Desk) -> Any:
    """`DELETE layers/{name}?role=&tenant=`."""
    role = desk.request.query.get("role", "")
    await desk.tenancy.set_layer(desk.parts[0], None, role=role, tenant=_wherever(desk))
    return {"name": desk.parts[0], "removed": True}


async def put_role(desk: Desk) -> Any:
    """`PUT roles/{role}` `{permissions, tenant?}`: flat permissions, kept as a layer."""
    given = desk.read(_Role)
    tenant = _wherever(desk)
    await desk.tenancy.set_role(desk.parts[0], given.permissions, tenant=tenant)
    return {"role": desk.parts[0], "tenant": tenant}


async def remove_role(desk: Desk) -> Any:
    """`DELETE roles/{role}?tenant=`."""
    await desk.tenancy.remove_role(desk.parts[0], tenant=_wherever(desk))
    return {"role": desk.parts[0], "removed": True}


async def list_personas(desk: Desk) -> Any:
    """`GET personas`."""
    personas = desk.gate.tenancy.world.everyone.personas
    return {
        "personas": [
            {
                "id": name,
                "can_add_tools": persona.can_add_tools,
                "tools": {
                    tool: msgspec.to_builtins(one)
                    for tool, one in sorted(persona.restrictions.items())
                },
            }
            for name, persona in sorted(personas.items())
        ]
    }


async def put_persona(desk: Desk) -> Any:
    """`PUT personas/{id}` `{can_add_tools}`."""
    desk.need_all()
    given = desk.read(_Persona)
    await desk.tenancy.set_persona(desk.parts[0], given.can_add_tools)
    return {"id": desk.parts[0], "can_add_tools": given.can_add_tools}


async def put_restriction(desk: Desk) -> Any:
    """`PUT personas/{id}/tools/{tool}` `{allowed, reason}`; `null` takes it back."""
    desk.need_all()
    given = desk.read(_Restriction)
    persona, _, tool = desk.parts[0], desk.parts[1], desk.parts[2]
    await desk.tenancy.restrict(persona, tool, allowed=given.allowed, reason=given.reason)
    return {"id": persona, "tool": tool, "allowed": given.allowed}


async def list_relations(desk: Desk) -> Any:
    """`GET relations?tenant=&limit=`."""
    most = desk.request.number("limit", default=1_000, most=_MOST_RELATIONS)
    found = await desk.gate.tenancy.relations(desk.need_tenant(), limit=most)
    return {"relations": [str(relation) for relation in found]}


async def put_relations(desk: Desk) -> Any:
    """`POST relations` `{tenant, add: [...], remove: [...]}`."""
    given = desk.read(_Relations)
    if not given.add and not given.remove:
        raise InvalidRequest("Send relations to 'add' or to 'remove'.")
    tenant = desk.need_tenant()
    await desk.tenancy.relate(tenant, add=given.add, remove=given.remove)
    return {"tenant": tenant, "added": len(given.add), "removed": len(given.remove)}


async def list_policies(desk: Desk) -> Any:
    """`GET policies`: the modules that are kept in the store, and how the engine is doing."""
    desk.need_all()
    return {
        "modules": dict(desk.gate.tenancy.world.everyone.policies),
        "engines": [msgspec.to_builtins(one) for one in desk.gate.gate.health()],
    }


async def put_policy(desk: Desk) -> Any:
    """`PUT policies/{name}` `{text}`: checked with all the others before it is kept."""
    desk.need_all()
    await desk.tenancy.set_policy_module(desk.parts[0], desk.read(_Module).text)
    return {"name": desk.parts[0]}


async def remove_policy(desk: Desk) -> Any:
    """`DELETE policies/{name}`."""
    desk.need_all()
    await desk.tenancy.set_policy_module(desk.parts[0], None)
    return {"name": desk.parts[0], "removed": True}


async def list_audit(desk: Desk) -> Any:
    """`GET audit?tenant=&limit=&before=`: who changed what, when and why; newest first."""
    asked = desk.request
    before = (
        asked.number("before", default=0, most=999_999_999) if "before" in asked.query else None
    )
    records = await desk.gate.tenancy.audit(
        tenant=desk.tenant or None,
        limit=asked.number("limit", default=100, most=1_000),
        before=before,
    )
    return {"records": [msgspec.to_builtins(record) for record in records]}


def _wherever(desk: Desk) -> str:
    """A tenant, or every tenant for a key that reaches them all."""
    tenant = desk.tenant
    if not tenant:
        desk.need_all()
    return tenant


def _layers(tenant: str, layers: Layers) -> list[dict[str, Any]]:
    return [
        {"tenant": tenant, "role": role, "name": name} | msgspec.to_builtins(layer)
        for (role, name), layer in sorted(layers.items(), key=lambda item: item[0])
    ]
