"""How each change is made in the tables."""

from functools import singledispatch

from sqlalchemy import Connection

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.store import key_rows, limits, rules, servers, tables
from toolgate.store.mention import mention
from toolgate.store.upsert import upsert
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    ExpireKey,
    FirstKeys,
    MarkRelations,
    PinTools,
    RemoveAgent,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetBudget,
    SetLayer,
    SetNewerMessages,
    SetPersona,
    SetPlan,
    SetPolicyModule,
    SetRateLimit,
    SetRelations,
    SetRestriction,
    SetServer,
    SetTenantFlag,
    SetToolFile,
    SetToolFlag,
)


@singledispatch
def apply(change: Change, connection: Connection) -> None:
    """Make the change, or `InvalidRequest` where it does not fit what is on record."""
    raise TypeError(f"no way to store a {type(change).__name__} on {connection.dialect.name}")


@apply.register
def _tool_flag(change: SetToolFlag, connection: Connection) -> None:
    mention(connection, change.tool)
    connection.execute(
        tables.tool_catalog.update()
        .where(tables.tool_catalog.c.name == change.tool)
        .values(enabled=change.enabled, updated_at=clock.utc_now())
    )


@apply.register
def _tenant_flag(change: SetTenantFlag, connection: Connection) -> None:
    table = tables.tenant_tool_flags
    if change.enabled is None:
        connection.execute(
            table.delete().where(
                table.c.tenant_id == change.tenant, table.c.tool_name == change.tool
            )
        )
        return
    mention(connection, change.tool)
    row = {
        "tenant_id": change.tenant,
        "tool_name": change.tool,
        "enabled": change.enabled,
        "updated_at": clock.utc_now(),
    }
    upsert(connection, table, [row], change=("enabled", "updated_at"))


@apply.register
def _tenant(change: AddTenant, connection: Connection) -> None:
    upsert(connection, tables.tenants, [{"id": change.tenant, "created_at": clock.utc_now()}])


@apply.register
def _agent(change: SetAgent, connection: Connection) -> None:
    row = {
        "tenant_id": change.tenant,
        "id": change.agent,
        "capsule_mode": (change.mode or Mode.ALL).value,
        "created_at": clock.utc_now(),
    }
    upsert(connection, tables.agents, [row], change=("capsule_mode",) if change.mode else ())
    gone = tables.removed_agents
    connection.execute(
        gone.delete().where(gone.c.tenant_id == change.tenant, gone.c.id == change.agent)
    )


@apply.register
def _newer_messages(change: SetNewerMessages, connection: Connection) -> None:
    agents = tables.agents
    found = connection.execute(
        agents.update()
        .where(agents.c.tenant_id == change.tenant, agents.c.id == change.agent)
        .values(newer_messages=change.newer_messages.value)
    )
    if not found.rowcount:
        raise InvalidRequest(f"There is no agent {change.agent!r}; nothing was changed.")


@apply.register
def _activation(change: SetActivation, connection: Connection) -> None:
    mention(connection, change.tool)
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


@apply.register
def _remove_agent(change: RemoveAgent, connection: Connection) -> None:
    agents, held = tables.agents, tables.api_keys
    found = connection.execute(
        agents.delete().where(agents.c.tenant_id == change.tenant, agents.c.id == change.agent)
    )
    if not found.rowcount:
        raise InvalidRequest(
            f"There is no agent {change.agent!r} of tenant {change.tenant!r}; nothing was changed."
        )
    mark = {"tenant_id": change.tenant, "id": change.agent, "removed_at": clock.utc_now()}
    upsert(connection, tables.removed_agents, [mark])
    # Revoked and kept: a key that was there cannot come back.
    connection.execute(
        held.update()
        .where(held.c.tenant_id == change.tenant, held.c.agent_id == change.agent)
        .values(revoked=True)
    )


apply.register(FirstKeys, key_rows.first_keys)
apply.register(AddKey, key_rows.add_key)
apply.register(RevokeKey, key_rows.revoke_key)
apply.register(ExpireKey, key_rows.expire_key)
apply.register(SetLayer, rules.set_layer)
apply.register(SetPersona, rules.set_persona)
apply.register(SetRestriction, rules.set_restriction)
apply.register(SetRelations, rules.set_relations)
apply.register(MarkRelations, rules.mark_relations)
apply.register(SetPolicyModule, rules.set_policy_module)
apply.register(SetToolFile, rules.set_tool_file)
apply.register(SetServer, servers.set_server)
apply.register(PinTools, servers.pin_tools)
apply.register(SetPlan, limits.set_plan)
apply.register(SetBudget, limits.set_budget)
apply.register(SetRateLimit, limits.set_rate_limit)
