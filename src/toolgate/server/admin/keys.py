"""`/v1/admin/keys`: never a digest, and a secret only in the answer that makes it."""

from typing import Any

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, Signed, SignedOfTenant, SomeOfTenant, beyond, noted
from toolgate.server.fields import Flag
from toolgate.tenancy import lasting
from toolgate.tenancy.keys import FreshKey, Key, Role, need_another_admin
from toolgate.tenancy.layer import roles_of
from toolgate.tenancy.roster import strangers

_YES = (True, "true", "")
_SHOWN = ("id", "role", "tenant", "agent", "user", "persona", "roles")


class NewKey(SignedOfTenant, kw_only=True):
    """Whom the key stands for."""

    role: Role
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    # A time such as `30d`, or a moment; without it the key has no end.
    expires: str = ""


class Rotated(Signed, kw_only=True):
    """How long the old secret opens beside the new one, and when the new one ends."""

    overlap: str = "1h"
    expires: str = ""


class Revoking(Signed, kw_only=True):
    """Whether also the last key of an admin goes: nobody administers from elsewhere without one."""

    force: bool | Flag = False


async def list_keys(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET keys?tenant=&limit=&cursor=`."""
    wanted = desk.tenant
    found = [key for key in _within(desk) if not wanted or key.tenant == wanted]
    some, following = desk.page(sorted(found, key=_place), _place)
    uses = await desk.gate.tenancy.uses.known()
    return {"keys": [shown(key, uses.get(key.id, 0)) for key in some], "next": following}


def _place(key: Key) -> tuple[str, str, str]:
    return key.tenant, key.agent, key.id


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
        expires=given.expires,
    )
    return _told(desk, fresh)


async def rotate_key(desk: Desk, given: Rotated) -> Any:
    """`POST keys/{id}/rotate`: another secret for the same holder, in this answer only."""
    [name] = desk.names
    _need(desk, name, "changed")
    fresh = await desk.tenancy.rotate_key(name, overlap=given.overlap, expires=given.expires)
    old = next((key for key in desk.gate.tenancy.world.keys.values() if key.id == name), None)
    ends = lasting.shown(old.expires_ns) if old is not None else None
    return _told(desk, fresh) | {"replaces": name, "replaced_until": ends}


async def revoke_key(desk: Desk, given: Revoking) -> Any:
    """`DELETE keys/{id}?force=`: also an admin's last one where it is forced."""
    [name] = desk.names
    _need(desk, name, "revoked")
    if given.force not in _YES:
        need_another_admin(name, desk.gate.tenancy.world.keys.values())
    await desk.tenancy.revoke_key(name)
    return {"id": name, "revoked": True}


def _need(desk: Desk, name: str, done: str) -> None:
    if not any(key.id == name for key in _within(desk)):
        raise InvalidRequest(f"There is no key {name[:80]!r}; nothing was {done}.")


def _told(desk: Desk, fresh: FreshKey) -> dict[str, Any]:
    world = desk.gate.tenancy.world
    known = roles_of(world.everyone.layers) | roles_of(world.tenant(fresh.key.tenant).layers)
    answer = shown(fresh.key, 0) | {"secret": fresh.secret}
    return noted(answer, strangers(fresh.key.roles, known))


def _within(desk: Desk) -> list[Key]:
    """The keys that this one may see and revoke: who runs a tenant has no say over the house's."""
    own, now_ns = desk.request.key.tenant, clock.unix_ns()
    return [
        key
        for key in desk.gate.tenancy.world.keys.values()
        if (desk.has_all or (key.tenant == own and key.role is not Role.ADMIN))
        and not key.is_over(now_ns)
    ]


def shown(key: Key, used_ns: int) -> dict[str, Any]:
    """A key without its digest, with when it began, ends and was last used."""
    return {name: getattr(key, name) for name in _SHOWN} | {
        "created": lasting.shown(key.created_ns),
        "expires": lasting.shown(key.expires_ns),
        "last_used": lasting.shown(used_ns),
    }
