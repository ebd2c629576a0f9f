"""The first start: a demo tenant with one agent, and the two keys that open the doors."""

import msgspec

from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy

TENANT = "demo"
AGENT = "assistant"


class FirstKeys(msgspec.Struct, frozen=True):
    """Shown once."""

    admin: str
    agent: str


async def first_keys(tenancy: Tenancy) -> FirstKeys | None:
    """Make them if there never were any: who revoked them all did not ask for new ones."""
    await tenancy.refresh()
    if tenancy.world.had_keys:
        return None
    await tenancy.set_agent(TENANT, AGENT)
    admin = await tenancy.add_key(Role.ADMIN, tenant=TENANT)
    agent = await tenancy.add_key(Role.AGENT, tenant=TENANT, agent=AGENT)
    return FirstKeys(admin.secret, agent.secret)
