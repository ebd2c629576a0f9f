"""The first start: a demo tenant with one agent, and the two keys that open the doors."""

import msgspec

from toolgate.tenancy.tenancy import Tenancy

TENANT = "demo"
AGENT = "assistant"
# The person at the machine. An agent that acts for nobody has nobody to ask for a confirmation.
USER = "owner"


class FirstKeys(msgspec.Struct, frozen=True):
    """Shown once."""

    admin: str
    agent: str


async def first_keys(tenancy: Tenancy) -> FirstKeys | None:
    """Make them if there never were any: who revoked them all did not ask for new ones."""
    made = await tenancy.add_first_keys(TENANT, AGENT, USER)
    if made is None:
        return None
    admin, agent = made
    return FirstKeys(admin.secret, agent.secret)


async def first_agent(tenancy: Tenancy) -> None:
    """The tenant and its agent, where nobody has a key yet. Keys are for whoever shows them."""
    world = tenancy.world
    if not world.keys and AGENT not in world.tenant(TENANT).capsules:
        await tenancy.set_agent(TENANT, AGENT)
