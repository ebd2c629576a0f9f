"""The world in tables: tenants, flags, capsules, keys."""

from collections import defaultdict
from functools import singledispatch
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.store import tables
from toolgate.store.database import Database
from toolgate.store.upsert import upsert
from toolgate.tenancy.capsule import Activation, Capsule, Mode
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
from toolgate.tenancy.keys import Key, Role, no_holder
from toolgate.tenancy.world import World

REVISION = "world"
_ROLES = frozenset(Role)


class TableDirectory:
    """The directory port over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        """How many times the world was changed."""
        return await self._database.read(_revision)

    async def load(self) -> World:
        """The whole world, in one transaction."""
        return await self._database.read(_load)

    async def put(self, changes: tuple[Change, ...]) -> None:
        """All of the changes, or none."""

        def work(connection: Connection) -> None:
            bump(connection)
            for change in changes:
                _apply(change, connection)

        try:
            await self._database.write(work)
        except IntegrityError:
            raise InvalidRequest(
                "The change names a tenant or an agent that is not on record, or a key that is; "
                "nothing was changed."
            ) from None


def bump(connection: Connection) -> None:
    """The world is a new one. First in a transaction: changes wait here, and never cross."""
    upsert(connection, tables.revisions, [{"name": REVISION, "value": 0}])
    connection.execute(
        tables.revisions.update()
        .where(tables.revisions.c.name == REVISION)
        .values(value=tables.revisions.c.value + 1)
    )


def _revision(connection: Connection) -> int:
    found = connection.execute(
        sa.select(tables.revisions.c.value).where(tables.revisions.c.name == REVISION)
    ).scalar()
    return found or 0


def _load(connection: Connection) -> World:
    catalog, flags = tables.tool_catalog.c, tables.tenant_tool_flags.c
    tenant_flags: dict[str, dict[str, bool]] = defaultdict(dict)
    for tenant, tool, enabled in connection.execute(
        sa.select(flags.tenant_id, flags.tool_name, flags.enabled)
    ):
        tenant_flags[tenant][tool] = enabled
    named = connection.execute(
        sa.select(catalog.name, catalog.enabled).where(catalog.enabled.is_not(None))
    )
    return World(
        revision=_revision(connection),
        tenants=frozenset(connection.execute(sa.select(tables.tenants.c.id)).scalars()),
        tool_flags=MappingProxyType({row.name: row.enabled for row in named}),
        tenant_flags=MappingProxyType(dict(tenant_flags)),
        capsules=MappingProxyType(_capsules(connection)),
        keys=MappingProxyType(_keys(connection)),
    )


def _capsules(connection: Connection) -> dict[tuple[str, str], Capsule]:
    active, agents = tables.tool_activations.c, tables.agents.c
    listed: dict[tuple[str, str], dict[str, Activation]] = defaultdict(dict)
    for tenant, agent, tool, enabled, overrides in connection.execute(
        sa.select(
            active.tenant_id,
            active.agent_id,
            active.tool_name,
            active.enabled,
            active.policy_overrides,
        )
    ):
        listed[tenant, agent][tool] = Activation(enabled, MappingProxyType(overrides))
    return {
        # A mode that a newer version knows starts from nothing here.
        (tenant, agent): Capsule(
            Mode.ALL if mode == Mode.ALL else Mode.LISTED,
            MappingProxyType(listed.get((tenant, agent), {})),
        )
        for tenant, agent, mode in connection.execute(
            sa.select(agents.tenant_id, agents.id, agents.capsule_mode)
        )
    }


def _keys(connection: Connection) -> dict[str, Key]:
    column = tables.api_keys.c
    rows = connection.execute(
        sa.select(column.id, column.digest, column.role, column.tenant_id, column.agent_id).where(
            column.revoked.is_(False)
        )
    )
    return {
        digest: Key(id=id_, digest=digest, role=Role(role), tenant=tenant, agent=agent)
        for id_, digest, role, tenant, agent in rows
        # A role that a newer version knows opens nothing here.
        if role in _ROLES
    }


@singledispatch
def _apply(change: Change, connection: Connection) -> None:
    raise TypeError(f"no way to store a {type(change).__name__} on {connection.dialect.name}")


@_apply.register
def _tool_flag(change: SetToolFlag, connection: Connection) -> None:
    _mention(connection, change.tool)
    connection.execute(
        tables.tool_catalog.update()
        .where(tables.tool_catalog.c.name == change.tool)
        .values(enabled=change.enabled, updated_at=clock.utc_now())
    )


@_apply.register
def _tenant_flag(change: SetTenantFlag, connection: Connection) -> None:
    table = tables.tenant_tool_flags
    if change.enabled is None:
        connection.execute(
            table.delete().where(
                table.c.tenant_id == change.tenant, table.c.tool_name == change.tool
            )
        )
        return
    _mention(connection, change.tool)
    row = {
        "tenant_id": change.tenant,
        "tool_name": change.tool,
        "enabled": change.enabled,
        "updated_at": clock.utc_now(),
    }
    upsert(connection, table, [row], change=("enabled", "updated_at"))


@_apply.register
def _tenant(change: AddTenant, connection: Connection) -> None:
    upsert(connection, tables.tenants, [{"id": change.tenant, "created_at": clock.utc_now()}])


@_apply.register
def _agent(change: SetAgent, connection: Connection) -> None:
    row = {
        "tenant_id": change.tenant,
        "id": change.agent,
        "capsule_mode": (change.mode or Mode.ALL).value,
        "created_at": clock.utc_now(),
    }
    upsert(connection, tables.agents, [row], change=("capsule_mode",) if change.mode else ())


@_apply.register
def _activation(change: SetActivation, connection: Connection) -> None:
    _mention(connection, change.tool)
    row = {
        "tenant_id": change.tenant,
        "agent_id": change.agent,
        "tool_name": change.tool,
        "enabled": change.enabled,
        "policy_overrides": dict(change.overrides),
        "updated_at": clock.utc_now(),
    }
    upsert(
        connection,
        tables.tool_activations,
        [row],
        change=("enabled", "policy_overrides", "updated_at"),
    )


@_apply.register
def _first_keys(change: FirstKeys, connection: Connection) -> None:  # noqa: ARG001
    if connection.execute(sa.select(tables.api_keys.c.id).limit(1)).first() is not None:
        raise InvalidRequest("There were keys before; nothing was changed.")


@_apply.register
def _add_key(change: AddKey, connection: Connection) -> None:
    key = change.key
    holder = sa.select(tables.tenants.c.id).where(tables.tenants.c.id == key.tenant)
    if key.agent:
        agents = tables.agents.c
        holder = sa.select(agents.id).where(agents.tenant_id == key.tenant, agents.id == key.agent)
    if connection.execute(holder).first() is None:
        raise no_holder(key)
    connection.execute(
        tables.api_keys.insert().values(
            id=key.id,
            digest=key.digest,
            role=key.role.value,
            tenant_id=key.tenant,
            agent_id=key.agent,
            revoked=key.revoked,
            created_at=clock.utc_now(),
        )
    )


@_apply.register
def _revoke_key(change: RevokeKey, connection: Connection) -> None:
    table = tables.api_keys
    found = connection.execute(table.update().where(table.c.id == change.id).values(revoked=True))
    if not found.rowcount:
        # An operator who mistypes must not believe that the key is shut.
        raise InvalidRequest(f"There is no key {change.id!r}; nothing was revoked.")


def _mention(connection: Connection, tool: str) -> None:
    """A flag hangs on a row of the catalog, also for a tool that is defined elsewhere."""
    now = clock.utc_now()
    row: dict[str, object] = {
        "name": tool,
        "params": {},
        "source": "elsewhere",
        "created_at": now,
        "updated_at": now,
    }
    upsert(connection, tables.tool_catalog, [row])
