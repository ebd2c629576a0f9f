"""Who and what is on record: a change that names anything else may have met a typo."""

from collections.abc import Collection, Iterable

from toolgate.errors import InvalidRequest
from toolgate.tenancy.layer import is_name
from toolgate.tenancy.names import nearest
from toolgate.tenancy.world import World


def need(world: World, tenant: str, agent: str = "") -> None:
    """`InvalidRequest` where the tenant, or its agent, is not on record; empty means none."""
    if tenant and tenant not in world.tenants:
        raise InvalidRequest(
            f"There is no tenant {tenant[:80]!r} on record; nothing was changed."
            + nearest(tenant, world.tenants)
        )
    capsules = world.tenant(tenant).capsules
    if agent and agent not in capsules:
        raise InvalidRequest(
            f"There is no agent {agent[:80]!r} of tenant {tenant!r} on record; nothing was changed."
            + nearest(agent, capsules)
        )


def newcomers(before: World, after: World, tenant: str, agent: str = "") -> list[str]:
    """A sentence for the tenant, and for its agent, that was not on record before a change."""
    told: list[str] = []
    if tenant and tenant not in before.tenants:
        told.append(_said(f"Tenant {tenant!r}", is_now=tenant in after.tenants))
    if agent and agent not in before.tenant(tenant).capsules:
        is_now = agent in after.tenant(tenant).capsules
        told.append(_said(f"Agent {agent!r} of tenant {tenant!r}", is_now=is_now))
    return told


def unheard(selectors: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for each name that no tool has. It may get one later."""
    return [
        f"No tool is called {one[:80]!r} so far.{nearest(one, known)}"
        for one in selectors
        if is_name(one) and one not in known
    ]


def strangers(roles: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for each role that is not on record where others are: its holder is refused."""
    return [
        f"Role {one[:80]!r} is not on record, and other roles are: who has it is refused."
        + nearest(one, known)
        for one in roles
        if known and one not in known
    ]


def _said(whom: str, *, is_now: bool) -> str:
    return f"{whom} was not on record; it is now." if is_now else f"{whom} is not on record."
