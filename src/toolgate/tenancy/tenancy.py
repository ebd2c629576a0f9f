"""The current world, and the changes an operator makes to it."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from toolgate.tenancy import keys
from toolgate.tenancy.capsule import NO_OVERRIDES, Mode
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.identity import plain
from toolgate.tenancy.keys import FreshKey, Role
from toolgate.tenancy.world import World


class Directory(Protocol):
    """Where the world is kept. A change raises the revision, so that other nodes notice."""

    async def revision(self) -> int:
        """How many times the world was changed."""
        ...

    async def load(self) -> World:
        """The world at one revision, whole."""
        ...

    async def put(self, changes: tuple[Change, ...]) -> None:
        """All of them or none; `InvalidRequest` where one does not fit what is on record."""
        ...


class Tenancy:
    """Holds the world in memory. A change is stored first and seen at once afterwards."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        # One at a time: a world that was read earlier must not replace one that was read later.
        self._taking = asyncio.Lock()
        self.world = World(revision=-1)

    async def refresh(self) -> bool:
        """Take over what other nodes changed; whether anything had."""
        async with self._taking:
            if await self._directory.revision() == self.world.revision:
                return False
            self.world = await self._directory.load()
            return True

    async def set_tool(self, tool: str, enabled: bool | None) -> None:  # noqa: FBT001
        """Switch a tool on or off for everyone; `None` leaves it to its definition."""
        await self._put(SetToolFlag(tool, enabled))

    async def set_tenant_tool(self, tenant: str, tool: str, enabled: bool | None) -> None:  # noqa: FBT001
        """Switch a tool on or off for one tenant; `None` leaves it to the flag for everyone."""
        await self._put(SetTenantFlag(plain("tenant", tenant), tool, enabled))

    async def add_tenant(self, tenant: str) -> None:
        """Put a tenant on record."""
        await self._put(AddTenant(plain("tenant", tenant)))

    async def set_agent(self, tenant: str, agent: str, mode: Mode = Mode.ALL) -> None:
        """Put an agent on record, with where its capsule starts from."""
        await self._put(
            AddTenant(plain("tenant", tenant)), SetAgent(tenant, plain("agent", agent), mode)
        )

    async def activate(
        self,
        tenant: str,
        agent: str,
        tool: str,
        *,
        enabled: bool = True,
        overrides: Mapping[str, Any] = NO_OVERRIDES,
    ) -> None:
        """Switch a tool on or off in an agent's capsule. A new agent is put on record."""
        await self._put(
            AddTenant(plain("tenant", tenant)),
            # Its mode may have been set on another node since this one looked.
            SetAgent(tenant, plain("agent", agent), None),
            SetActivation(tenant, agent, tool, enabled, overrides),
        )

    async def add_key(self, role: Role, *, tenant: str, agent: str = "") -> FreshKey:
        """Make a key. Its secret is in the answer and nowhere else. An admin needs no agent."""
        plain("tenant", tenant)
        if agent or role is Role.AGENT:
            plain("agent", agent)
        fresh = keys.make(role, tenant=tenant, agent=agent)
        await self._put(AddKey(fresh.key))
        return fresh

    async def revoke_key(self, key_id: str) -> None:
        """The key opens nothing any more."""
        await self._put(RevokeKey(key_id))

    async def _put(self, *changes: Change) -> None:
        async with self._taking:
            await self._directory.put(changes)
            self.world = await self._directory.load()
