"""The current world, and the changes an operator makes to it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeVar

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.tenancy import keys, lasting, names
from toolgate.tenancy.audit import Record
from toolgate.tenancy.capsule import NO_OVERRIDES, Mode, NewerMessages
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    ExpireKey,
    FirstKeys,
    RemoveAgent,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetNewerMessages,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.filing import Filing
from toolgate.tenancy.keys import WITHOUT_AGENT, FreshKey, Key, Role
from toolgate.tenancy.limiting import Limiting
from toolgate.tenancy.relating import Relating
from toolgate.tenancy.rules import Rules
from toolgate.tenancy.serving import Serving

CARE = ("requires_confirmation", "requires_approval")
_MOST_RECORDS = 1_000
E = TypeVar("E", bound=StrEnum)


class Tenancy(Rules, Relating, Limiting, Serving, Filing):
    """Holds the world in memory. A change is stored first and seen at once afterwards."""

    async def refresh(self) -> bool:
        """Take over what other nodes changed; whether anything had."""
        return await self._present.refresh()

    async def freshen(self) -> None:
        """See the store as it is after this was called, or `StoreUnavailable`.

        What may have been revoked must not run.
        """
        await self._present.freshen()

    @property
    def age_ns(self) -> int:
        """How long ago the store was last asked, and answered."""
        return self._present.age_ns

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed, the newest first: by whom, and why. `None` means every tenant.

        `before` is the id of the last record that was read, to read on from there.
        """
        if tenant:
            plain("tenant", tenant)
        if not 1 <= limit <= _MOST_RECORDS:
            raise InvalidRequest(f"The limit is a number from 1 to {_MOST_RECORDS:,}.")
        return await self._directory.audit(tenant=tenant, limit=limit, before=before)

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

    async def set_newer_messages(
        self,
        tenant: str,
        agent: str,
        newer_messages: NewerMessages | Literal["supersede", "absorb", "force_complete", "queue"],
    ) -> None:
        """What an agent does when newer messages wait before a call that cannot be taken back.

        A new agent is put on record.
        """
        await self._put(
            AddTenant(plain("tenant", tenant)),
            SetAgent(tenant, plain("agent", agent), None),
            SetNewerMessages(tenant, agent, _one_of(NewerMessages, newer_messages)),
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

    async def remove_agent(self, tenant: str, agent: str) -> None:
        """An agent is gone, with its capsule, and its keys open nothing any more.

        Its name may do nothing until it is put on record again.
        """
        await self._put(RemoveAgent(plain("tenant", tenant), plain("agent", agent)))

    async def add_key(
        self,
        role: Role,
        *,
        tenant: str,
        agent: str = "",
        user: str = "",
        persona: str = "",
        roles: Iterable[str] = (),
        expires: str = "",
    ) -> FreshKey:
        """Make a key. Its secret is in the answer and nowhere else.

        An admin needs no agent, and one who runs or looks after a tenant has none. `expires` is a
        time such as `30d`, or a moment; without it the key has no end.
        """
        plain("tenant", tenant)
        role = _one_of(Role, role)
        if role in WITHOUT_AGENT and agent:
            raise InvalidRequest(
                f"The key of a {role} names no agent: it speaks for its tenant. No key was made."
            )
        if agent or role is Role.AGENT:
            plain("agent", agent)
        fresh = keys.make(
            role,
            tenant=tenant,
            agent=agent,
            user=names.user(user) if user else "",
            persona=names.label("persona", persona) if persona else "",
            roles=names.labels("role", roles),
            expires_ns=lasting.end(expires),
        )
        await self._put(AddKey(fresh.key))
        return fresh

    async def rotate_key(self, key_id: str, *, overlap: str = "1h", expires: str = "") -> FreshKey:
        """Another secret for the same holder; the old one opens for the overlap, then nothing.

        Without `expires` the new one lasts as long as the old one was meant to.
        """
        left_ns = lasting.span(overlap, "overlap")
        now_ns = clock.unix_ns()
        old = self._key(key_id, now_ns)
        end_ns = lasting.end(expires)
        if not expires and old.expires_ns:
            end_ns = now_ns + old.expires_ns - old.created_ns
        fresh = keys.renewed(old, end_ns)
        await self._put(AddKey(fresh.key), ExpireKey(old.id, now_ns + left_ns))
        return fresh

    def _key(self, key_id: str, now_ns: int) -> Key:
        for key in self.world.keys.values():
            if key.id == key_id and not key.is_over(now_ns):
                return key
        raise InvalidRequest(f"There is no key {key_id[:80]!r}; nothing was changed.")

    async def add_first_keys(
        self, tenant: str, agent: str, user: str = ""
    ) -> tuple[FreshKey, FreshKey] | None:
        """A tenant, its agent, and a key for an admin and the agent, if there never was a key."""
        plain("tenant", tenant)
        admin = keys.make(Role.ADMIN, tenant=tenant)
        own = keys.make(Role.AGENT, tenant=tenant, agent=plain("agent", agent), user=user)
        try:
            await self._put(
                FirstKeys(),
                AddTenant(tenant),
                SetAgent(tenant, agent, None),
                AddKey(admin.key),
                AddKey(own.key),
            )
        except InvalidRequest:
            await self._present.refresh()
            return None
        return admin, own

    async def revoke_key(self, key_id: str) -> None:
        """The key opens nothing any more."""
        await self._put(RevokeKey(key_id))


def _care(overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """Only what adds care is taken: a misspelt or weaker override would be believed to hold."""
    for key, value in overrides.items():
        if key not in CARE:
            raise InvalidRequest(
                f"{key[:80]!r} is no override; there are {' and '.join(CARE)}."
                + names.nearest(key, CARE)
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
