"""The current world, and the changes an operator makes to it."""

import asyncio
import difflib
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar

from toolgate import clock
from toolgate.errors import InvalidRequest, StoreUnavailable
from toolgate.identity import plain
from toolgate.tenancy import keys
from toolgate.tenancy.capsule import NO_OVERRIDES, Mode
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    FirstKeys,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.keys import FreshKey, Role
from toolgate.tenancy.world import World

# The names of all tools, or `None` where nobody can tell.
Known = Callable[[], Collection[str] | None]
# How long a world is believed without asking; side effects ask again after that.
_STALE_NS = 5 * 10**9
_FRESHEN_SECONDS = 2.0
# Comparing a name with many others takes long enough to be noticed.
_MOST_COMPARED = 1_000
CARE = ("requires_confirmation", "requires_approval")
E = TypeVar("E", bound=StrEnum)


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

    def __init__(self, directory: Directory, *, known: Known = lambda: None) -> None:
        """`known` names the tools there are, so that a flag cannot miss its tool by a typo."""
        self._directory = directory
        self._known = known
        # One at a time: a world that was read earlier must not replace one that was read later.
        self._taking = asyncio.Lock()
        self._asked_ns = -_STALE_NS
        self.world = World(revision=-1)

    async def refresh(self) -> bool:
        """Take over what other nodes changed; whether anything had."""
        async with self._taking:
            asked_ns = clock.monotonic_ns()
            changed = await self._directory.revision() != self.world.revision
            if changed:
                self.world = await self._directory.load()
            self._asked_ns = asked_ns
            return changed

    def is_stale(self) -> bool:
        """Whether what other nodes changed may have been missed for too long."""
        return clock.monotonic_ns() - self._asked_ns > _STALE_NS

    async def freshen(self) -> None:
        """Look now, or `StoreUnavailable`: what may have been revoked must not run."""
        try:
            async with asyncio.timeout(_FRESHEN_SECONDS):
                await self.refresh()
        except TimeoutError:
            raise StoreUnavailable(
                "The store does not answer, so nobody can tell whether this is still allowed. "
                "Nothing ran; try again when it is back."
            ) from None

    async def set_tool(self, tool: str, enabled: bool | None) -> None:  # noqa: FBT001
        """Switch a tool on or off for everyone; `None` leaves it to its definition."""
        await self._put(SetToolFlag(self._tool(tool), enabled))

    async def set_tenant_tool(self, tenant: str, tool: str, enabled: bool | None) -> None:  # noqa: FBT001
        """Switch a tool on or off for one tenant; `None` leaves it to the flag for everyone."""
        await self._put(SetTenantFlag(plain("tenant", tenant), self._tool(tool), enabled))

    async def add_tenant(self, tenant: str) -> None:
        """Put a tenant on record."""
        await self._put(AddTenant(plain("tenant", tenant)))

    async def set_agent(
        self, tenant: str, agent: str, mode: Mode | Literal["all", "listed"] = Mode.ALL
    ) -> None:
        """Put an agent on record; its capsule starts from all that the tenant has, or nothing."""
        await self._put(
            AddTenant(plain("tenant", tenant)),
            SetAgent(tenant, plain("agent", agent), _one_of(Mode, mode)),
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
        """Switch a tool on or off in an agent's capsule. A new agent is put on record.

        An override asks for more care than the tool does: `{"requires_confirmation": True}`.
        """
        await self._put(
            AddTenant(plain("tenant", tenant)),
            # Its mode may have been set on another node since this one looked.
            SetAgent(tenant, plain("agent", agent), None),
            SetActivation(tenant, agent, self._tool(tool), enabled, _care(overrides)),
        )

    async def add_key(self, role: Role, *, tenant: str, agent: str = "") -> FreshKey:
        """Make a key. Its secret is in the answer and nowhere else. An admin needs no agent."""
        plain("tenant", tenant)
        role = _one_of(Role, role)
        if agent or role is Role.AGENT:
            plain("agent", agent)
        fresh = keys.make(role, tenant=tenant, agent=agent)
        await self._put(AddKey(fresh.key))
        return fresh

    async def add_first_keys(self, tenant: str, agent: str) -> tuple[FreshKey, FreshKey] | None:
        """A tenant, its agent, and a key for an admin and the agent, if there never was a key."""
        plain("tenant", tenant)
        admin = keys.make(Role.ADMIN, tenant=tenant)
        own = keys.make(Role.AGENT, tenant=tenant, agent=plain("agent", agent))
        try:
            await self._put(
                FirstKeys(),
                AddTenant(tenant),
                SetAgent(tenant, agent, None),
                AddKey(admin.key),
                AddKey(own.key),
            )
        except InvalidRequest:
            await self.refresh()
            return None
        return admin, own

    async def revoke_key(self, key_id: str) -> None:
        """The key opens nothing any more."""
        await self._put(RevokeKey(key_id))

    def _tool(self, name: str) -> str:
        known = self._known()
        if known is None or name in known:
            return name
        raise InvalidRequest(
            f"There is no tool {name[:80]!r} in the catalog; nothing was changed."
            + _nearest(name, known)
        )

    async def _put(self, *changes: Change) -> None:
        async with self._taking:
            await self._directory.put(changes)
            asked_ns = clock.monotonic_ns()
            self.world = await self._directory.load()
            self._asked_ns = asked_ns


def _care(overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only what adds care is taken: a misspelt or weaker override would be believed to hold."""
    for key, value in overrides.items():
        if key not in CARE:
            raise InvalidRequest(
                f"{key[:80]!r} is no override; there are {' and '.join(CARE)}.{_nearest(key, CARE)}"
            )
        if value is not True:
            raise InvalidRequest(
                f"The override {key} can only be True: an agent can ask for more care, never for "
                "less. Leave it out to keep what the tool says."
            )
    return overrides


def _one_of(choices: type[E], given: str) -> E:
    try:
        return choices(given)
    except ValueError:
        listed = ", ".join(choices)
        raise InvalidRequest(f"{given!r} is not one of: {listed}.") from None


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:80], known, n=1) if len(known) <= _MOST_COMPARED else []
    return f" Did you mean {close[0]!r}?" if close else ""
