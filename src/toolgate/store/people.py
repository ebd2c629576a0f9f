"""Tenants with their flags, capsules and relations' freshness, read from their tables."""

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store import limits, tables
from toolgate.tenancy.capsule import Activation, Capsule, Mode, NewerMessages
from toolgate.tenancy.layer import Layer, LayerKey
from toolgate.tenancy.parts import RELATIONS
from toolgate.tenancy.world import Tenant

Names = frozenset[str] | None
_NEWER = frozenset(NewerMessages)


def read_tenants(
    connection: Connection, names: Names, layers: Mapping[str, dict[LayerKey, Layer]]
) -> dict[str, Tenant]:
    """Those on record and those of whom something is said: these, or all."""
    flags = _flags(connection, names)
    capsules = _capsules(connection, names)
    removed = _removed(connection, names)
    changed = _relations(connection, names)
    token = tables.relation_tokens.c
    asked = sa.select(token.tenant_id, token.token).where(*_among(token.tenant_id, names))
    tokens: dict[str, str] = {tenant: text for tenant, text in connection.execute(asked)}  # noqa: C416  a Row is no pair
    column = tables.tenants.c
    listed = sa.select(column.id, column.plan).where(*_among(column.id, names))
    known: dict[str, str] = {tenant: plan or "" for tenant, plan in connection.execute(listed)}
    budgets = limits.read_budgets(connection, names)
    rates = limits.read_rates(connection, names)
    return {
        name: Tenant(
            flags=MappingProxyType(flags.get(name, {})),
            capsules=MappingProxyType(capsules.get(name, {})),
            removed=frozenset(removed.get(name, ())),
            layers=MappingProxyType(layers.get(name, {})),
            relations=changed.get(name, 0),
            relations_token=tokens.get(name, ""),
            plan=known.get(name, ""),
            budgets=MappingProxyType(budgets.get(name, {})),
            rates=MappingProxyType(rates.get(name, {})),
        )
        for name in sorted({*known, *flags, *capsules, *layers, *changed, *budgets, *rates} - {""})
    }


def _among(column: sa.Column[Any], names: Names) -> tuple[sa.ColumnElement[bool], ...]:
    return () if names is None else (column.in_(names),)


def _flags(connection: Connection, names: Names) -> dict[str, dict[str, bool]]:
    column = tables.tenant_tool_flags.c
    asked = sa.select(column.tenant_id, column.tool_name, column.enabled).where(
        *_among(column.tenant_id, names)
    )
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    # The same tool in a thousand tenants is one text.
    texts: dict[str, str] = {}
    for tenant, tool, enabled in connection.execute(asked):
        found[tenant][texts.setdefault(tool, tool)] = enabled
    return found


def _capsules(connection: Connection, names: Names) -> dict[str, dict[str, Capsule]]:
    active, agents = tables.tool_activations.c, tables.agents.c
    listed: dict[tuple[str, str], dict[str, Activation]] = defaultdict(dict)
    asked = sa.select(
        active.tenant_id,
        active.agent_id,
        active.tool_name,
        active.enabled,
        active.policy_overrides,
    ).where(*_among(active.tenant_id, names))
    for tenant, agent, tool, enabled, overrides in connection.execute(asked):
        listed[tenant, agent][tool] = Activation(enabled, MappingProxyType(overrides))
    found: dict[str, dict[str, Capsule]] = defaultdict(dict)
    on_record = sa.select(
        agents.tenant_id, agents.id, agents.capsule_mode, agents.newer_messages
    ).where(*_among(agents.tenant_id, names))
    for tenant, agent, mode, newer in connection.execute(on_record):
        found[tenant][agent] = Capsule(
            # A mode that a newer version knows starts from nothing here.
            Mode.ALL if mode == Mode.ALL else Mode.LISTED,
            MappingProxyType(listed.get((tenant, agent), {})),
            # What nobody said, or only a newer version knows, is the careful one.
            NewerMessages(newer) if newer in _NEWER else NewerMessages.SUPERSEDE,
        )
    return found


def _removed(connection: Connection, names: Names) -> dict[str, set[str]]:
    column = tables.removed_agents.c
    asked = sa.select(column.tenant_id, column.id).where(*_among(column.tenant_id, names))
    found: dict[str, set[str]] = defaultdict(set)
    for tenant, agent in connection.execute(asked):
        found[tenant].add(agent)
    return found


def _relations(connection: Connection, names: Names) -> dict[str, int]:
    """The revision of each tenant's last change of relations."""
    column = tables.revisions.c
    asked = sa.select(column.name, column.value)
    if names is None:
        asked = asked.where(column.name.startswith(RELATIONS))
    else:
        asked = asked.where(column.name.in_([RELATIONS + name for name in names]))
    return {name.removeprefix(RELATIONS): value for name, value in connection.execute(asked)}
