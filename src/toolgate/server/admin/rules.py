"""`/v1/admin/`: layers, roles and personas."""

from typing import Any

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, Signed, SignedOfTenant, Some, SomeOfTenant, noted
from toolgate.tenancy import roster
from toolgate.tenancy.layer import Layer, Permissions, role_rows, row_of, rows_of
from toolgate.tenancy.names import nearest
from toolgate.tenancy.world import World


class NewLayer(SignedOfTenant):
    """A layer, whole; without a role it is everybody's."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    reason: str = ""
    role: str = ""


class OldLayer(SignedOfTenant):
    """Whose layer goes."""

    role: str = ""


class NewRole(SignedOfTenant, kw_only=True):
    """Flat permissions."""

    permissions: Permissions


class Persona(Signed, kw_only=True):
    """`can_add_tools` is true, false, or null, which takes back what was said."""

    can_add_tools: bool | None


class Restriction(Signed):
    """`allowed` is false, true, or null, which takes the restriction away."""

    allowed: bool | None = False
    reason: str = ""


async def list_layers(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET layers?tenant=&limit=&cursor=`."""
    kept = desk.gate.tenancy.world.layers(desk.tenant)
    rows = [row for tenant, layers in kept for row in rows_of(tenant, layers)]
    shown, following = desk.page(rows, lambda row: (row["tenant"], row["role"], row["name"]))
    return {"layers": shown, "next": following}


async def put_layer(desk: Desk, given: NewLayer) -> Any:
    """`PUT layers/{name}` `{allow, deny, reason, role?, tenant?}`."""
    [name] = desk.names
    layer = Layer(allow=given.allow, deny=given.deny, reason=given.reason)
    tenant, before = desk.tenant, desk.gate.tenancy.world
    await desk.tenancy.set_layer(name, layer, role=given.role, tenant=tenant)
    return noted(row_of(tenant, given.role, name, layer), _notes(desk, before, tenant, layer))


async def remove_layer(desk: Desk, given: OldLayer) -> Any:
    """`DELETE layers/{name}?role=&tenant=`."""
    [name] = desk.names
    tenant = desk.tenant
    await desk.gate.tenancy.refresh()
    world = desk.gate.tenancy.world
    kept = world.tenant(tenant).layers if tenant else world.everyone.layers
    if (given.role, name) not in kept:
        there = [one for role, one in kept if role == given.role]
        raise InvalidRequest(
            f"There is no layer {name[:80]!r} of {_whose(given.role, tenant)}; nothing was changed."
            + nearest(name, there)
        )
    await desk.tenancy.set_layer(name, None, role=given.role, tenant=tenant)
    return {"name": name, "role": given.role, "tenant": tenant, "removed": True}


async def list_roles(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET roles?tenant=&limit=&cursor=`."""
    kept = desk.gate.tenancy.world.layers(desk.tenant)
    rows = [row for tenant, layers in kept for row in role_rows(tenant, layers)]
    shown, following = desk.page(rows, lambda row: (row["tenant"], row["role"]))
    return {"roles": shown, "next": following}


async def put_role(desk: Desk, given: NewRole) -> Any:
    """`PUT roles/{role}` `{permissions, tenant?}`: flat permissions, kept as a layer."""
    [role] = desk.names
    tenant, before = desk.tenant, desk.gate.tenancy.world
    await desk.tenancy.set_role(role, given.permissions, tenant=tenant)
    notes = _notes(desk, before, tenant, given.permissions.layer())
    return noted({"role": role, "tenant": tenant}, notes)


async def remove_role(desk: Desk, _: SignedOfTenant) -> Any:
    """`DELETE roles/{role}?tenant=`."""
    [role] = desk.names
    tenant = desk.tenant
    await desk.tenancy.remove_role(role, tenant=tenant)
    return {"role": role, "tenant": tenant, "removed": True}


async def list_personas(desk: Desk, _: Some) -> Any:
    """`GET personas?limit=&cursor=`: they are the same in every tenant."""
    personas = desk.gate.tenancy.world.everyone.personas
    shown, following = desk.page(sorted(personas.items()), lambda item: item[0])
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
            for name, persona in shown
        ],
        "next": following,
    }


async def put_persona(desk: Desk, given: Persona) -> Any:
    """`PUT personas/{id}` `{can_add_tools}`."""
    [persona] = desk.names
    await desk.tenancy.set_persona(persona, given.can_add_tools)
    return {"id": persona, "can_add_tools": given.can_add_tools}


async def put_restriction(desk: Desk, given: Restriction) -> Any:
    """`PUT personas/{id}/tools/{tool}` `{allowed, reason}`."""
    persona, tool = desk.names
    await desk.tenancy.restrict(persona, tool, allowed=given.allowed, reason=given.reason)
    return {"id": persona, "tool": tool, "allowed": given.allowed, "reason": given.reason}


def _notes(desk: Desk, before: World, tenant: str, layer: Layer) -> list[str]:
    unheard = roster.unheard(layer.allow or (), desk.gate.catalog.current.specs)
    return [*desk.notes(before, tenant), *unheard]


def _whose(role: str, tenant: str) -> str:
    whom = f"role {role[:80]!r}" if role else "everybody"
    return f"{whom} in tenant {tenant[:80]!r}" if tenant else whom
