"""`/v1/admin/keys`: never a digest, and a secret only in the answer that makes it."""

from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, OfTenant, Signed, SignedOfTenant, beyond, noted
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.layer import roles_of
from toolgate.tenancy.roster import strangers

_SHOWN = ("id", "role", "tenant", "agent", "user", "persona", "roles")


class NewKey(SignedOfTenant, kw_only=True):
    """Whom the key stands for."""

    role: Role
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()


async def list_keys(desk: Desk, _: OfTenant) -> Any:
    """`GET keys?tenant=`."""
    wanted = desk.tenant
    found = sorted(_within(desk), key=lambda key: (key.tenant, key.agent, key.id))
    return {"keys": [_shown(key) for key in found if not wanted or key.tenant == wanted]}


async def add_key(desk: Desk, given: NewKey) -> Any:
    """`POST keys`: the secret is in this answer and nowhere else."""
    if given.role is Role.ADMIN and not desk.has_all:
        raise beyond()
    fresh = await desk.tenancy.add_key(
        given.role,
        tenant=desk.need_tenant(),
        agent=given.agent,
        user=given.user,
        persona=given.persona,
        roles=given.roles,
    )
    world = desk.gate.tenancy.world
    known = roles_of(world.everyone.layers) | roles_of(world.tenant(fresh.key.tenant).layers)
    answer = _shown(fresh.key) | {"secret": fresh.secret}
    return noted(answer, strangers(fresh.key.roles, known))


async def revoke_key(desk: Desk, _: Signed) -> Any:
    """`DELETE keys/{id}`."""
    [name] = desk.names
    if not any(key.id == name for key in _within(desk)):
        raise InvalidRequest(f"There is no key {name[:80]!r}; nothing was revoked.")
    await desk.tenancy.revoke_key(name)
    return {"id": name, "revoked": True}


def _within(desk: Desk) -> list[Key]:
    """The keys that this one may see and revoke: who runs a tenant has no say over the house's."""
    own = desk.request.key.tenant
    return [
        key
        for key in desk.gate.tenancy.world.keys.values()
        if desk.has_all or (key.tenant == own and key.role is not Role.ADMIN)
    ]


def _shown(key: Key) -> dict[str, Any]:
    return {name: getattr(key, name) for name in _SHOWN}
