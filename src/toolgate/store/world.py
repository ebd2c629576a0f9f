"""The world read from its tables: whole, or only the parts that changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store import limits, revision, servers, tables
from toolgate.store.key_rows import read_keys
from toolgate.store.people import read_tenants
from toolgate.tenancy.layer import Layer, LayerKey
from toolgate.tenancy.parts import EVERYONE, KEYS, SERVERS, TENANT
from toolgate.tenancy.persona import Persona, Restriction
from toolgate.tenancy.world import Everyone, Tenant, World

T = TypeVar("T")
# Beyond that, one question for all is cheaper than one with every name in it.
_MOST_TENANTS = 200


class _News(NamedTuple):
    """The parts to read again."""

    everyone: bool
    keys: bool
    servers: bool
    # `None`: all there are.
    tenants: frozenset[str] | None


_ALL = _News(everyone=True, keys=True, servers=True, tenants=None)


def load(connection: Connection, since: World | None) -> World:
    """The world as it is. What did not change after `since` is the very same object."""
    now = revision.current(connection)
    known = since or World()
    news = _news(connection, known.revision, now)
    keys = MappingProxyType(read_keys(connection)) if news.keys else known.keys
    everyone = _everyone(connection) if news.everyone else known.everyone
    served = servers.read(connection) if news.servers else known.servers
    return World(
        revision=now,
        everyone=_same(known.everyone, everyone),
        tenants=_tenants(connection, news.tenants, known.tenants),
        keys=_same(known.keys, keys),
        servers=_same(known.servers, served),
    )


def _news(connection: Connection, since: int, now: int) -> _News:
    # A store that is behind was restored from a backup.
    if since <= 0 or since > now:
        return _ALL
    column = tables.revisions.c
    rows = connection.execute(
        sa.select(column.name, column.value).where(
            column.value > since, column.name != revision.WORLD
        )
    ).all()
    if since < now and now not in {value for _, value in rows}:
        # Counted by somebody who does not say what it was: an older version, or a hand.
        return _ALL
    names = {name for name, _ in rows}
    tenants = frozenset(name.removeprefix(TENANT) for name in names if name.startswith(TENANT))
    return _News(
        EVERYONE in names,
        KEYS in names,
        SERVERS in names,
        tenants if len(tenants) <= _MOST_TENANTS else None,
    )


def _tenants(
    connection: Connection, names: frozenset[str] | None, known: Mapping[str, Tenant]
) -> Mapping[str, Tenant]:
    if names is not None and not names:
        return known
    read = read_tenants(connection, names, _layers(connection, names))
    for name, tenant in read.items():
        read[name] = _same(known.get(name), tenant)
    if names is None:
        return MappingProxyType(read)
    kept = {name: tenant for name, tenant in known.items() if name not in names}
    return MappingProxyType(kept | read)


def _everyone(connection: Connection) -> Everyone:
    catalog, policy = tables.tool_catalog.c, tables.policy_modules.c
    flags = connection.execute(
        sa.select(catalog.name, catalog.enabled).where(catalog.enabled.is_not(None))
    )
    policies = connection.execute(sa.select(policy.name, policy.text).order_by(policy.name))
    return Everyone(
        flags=MappingProxyType(_pairs(flags)),
        layers=MappingProxyType(_layers(connection, ("",)).get("", {})),
        personas=MappingProxyType(_personas(connection)),
        policies=MappingProxyType(_pairs(policies)),
        rates=MappingProxyType(limits.read_rates(connection, ("",)).get("", {})),
    )


def _layers(
    connection: Connection, tenants: Iterable[str] | None
) -> Mapping[str, dict[LayerKey, Layer]]:
    """By tenant; those of every tenant stand under the empty name."""
    column = tables.policy_layers.c
    asked = sa.select(
        column.tenant_id, column.role, column.name, column.allow, column.deny, column.reason
    ).order_by(column.tenant_id, column.role, column.name)
    if tenants is not None:
        asked = asked.where(column.tenant_id.in_(tenants))
    found: dict[str, dict[LayerKey, Layer]] = defaultdict(dict)
    for tenant, role, name, allow, deny, reason in connection.execute(asked):
        found[tenant][role, name] = Layer(
            allow=None if allow is None else tuple(allow), deny=tuple(deny), reason=reason
        )
    return found


def _personas(connection: Connection) -> dict[str, Persona]:
    column, said = tables.persona_tool_restrictions.c, tables.personas.c
    restrictions: dict[str, dict[str, Restriction]] = defaultdict(dict)
    for persona, tool, allowed, reason in connection.execute(
        sa.select(column.persona_id, column.tool_name, column.allowed, column.reason)
    ):
        restrictions[persona][tool] = Restriction(allowed, reason or "")
    found = {
        persona: Persona(restrictions=MappingProxyType(kept))
        for persona, kept in restrictions.items()
    }
    for persona, can_add in connection.execute(sa.select(said.id, said.can_add_tools)):
        found[persona] = msgspec.structs.replace(
            found.get(persona, Persona()), can_add_tools=can_add
        )
    return found


def _pairs(rows: Iterable[Any]) -> dict[str, Any]:
    return {key: value for key, value in rows}  # noqa: C416  a Row is no pair


def _same(known: T | None, read: T) -> T:
    """What was touched and is as it was stays the same object, with all that hangs on it."""
    return read if known is None or known != read else known
