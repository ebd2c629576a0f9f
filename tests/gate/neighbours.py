"""Two tenants in one house, with the same names in both and not the same tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.gate.door import Door
from toolgate import Toolgate
from toolgate.settings.gate import Relations
from toolgate.settings.settings import Settings
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer


@asynccontextmanager
async def two_tenants(root: Path) -> AsyncGenerator[tuple[Toolgate, Door, dict[str, str]]]:
    """Two tenants with the same names in both; only acme has `timestamp`, and related users."""
    settings = Settings(root=root, relations=Relations(engine="store"))
    async with Toolgate.open(settings) as gate:
        tenancy = gate.tenancy
        keys: dict[str, str] = {}
        for tenant in ("acme", "umbrella"):
            await tenancy.set_agent(tenant, "billing")
            await tenancy.relate(tenant, add=["tool:echo#executor@user:ann"])
            await tenancy.set_layer("own", Layer(deny=("uuid_*",)), tenant=tenant)
            key = await tenancy.add_key(Role.AGENT, tenant=tenant, agent="billing", user="ann")
            keys[tenant], keys[f"{tenant} id"] = key.secret, key.key.id
            chief = await tenancy.add_key(Role.TENANT_ADMIN, tenant=tenant)
            keys[f"{tenant} chief"] = chief.secret
        await tenancy.set_tenant_tool("umbrella", "timestamp", enabled=False)
        await tenancy.set_tenant_tool("acme", "timestamp", enabled=True)
        await tenancy.relate("acme", add=["tool:timestamp#executor@user:ann"])
        keys["admin"] = (await tenancy.add_key(Role.ADMIN, tenant="acme")).secret
        yield gate, Door(gate), keys
