"""How layers, personas, relations, policies and tool files are put into their tables."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.store import tables
from toolgate.store.mention import mention
from toolgate.store.upsert import upsert
from toolgate.tenancy.changes import (
    MarkRelations,
    SetLayer,
    SetPersona,
    SetPolicyModule,
    SetRelations,
    SetRestriction,
    SetToolFile,
)
from toolgate.tenancy.relation import Relation


def set_layer(change: SetLayer, connection: Connection) -> None:
    """A layer, or none any more."""
    key = {"tenant_id": change.tenant, "role": change.role, "name": change.name}
    layer = change.layer
    if layer is None:
        _delete(connection, tables.policy_layers, key)
        return
    row = {
        **key,
        "allow": None if layer.allow is None else list(layer.allow),
        "deny": list(layer.deny),
        "reason": layer.reason,
        "updated_at": clock.utc_now(),
    }
    upsert(
        connection,
        tables.policy_layers,
        [row],
        change=("allow", "deny", "reason", "updated_at"),
    )


def set_persona(change: SetPersona, connection: Connection) -> None:
    """Whether it may add tools."""
    key = {"id": change.persona}
    if change.can_add_tools is None:
        _delete(connection, tables.personas, key)
        return
    row = {**key, "can_add_tools": change.can_add_tools, "updated_at": clock.utc_now()}
    upsert(connection, tables.personas, [row], change=("can_add_tools", "updated_at"))


def set_restriction(change: SetRestriction, connection: Connection) -> None:
    """One tool for one persona."""
    table = tables.persona_tool_restrictions
    key = {"persona_id": change.persona, "tool_name": change.tool}
    if change.allowed is None:
        _delete(connection, table, key)
        return
    mention(connection, change.tool)
    row = {
        **key,
        "allowed": change.allowed,
        "reason": change.reason,
        "updated_at": clock.utc_now(),
    }
    upsert(connection, table, [row], change=("allowed", "reason", "updated_at"))


def set_relations(change: SetRelations, connection: Connection) -> None:
    """Those to be removed are gone, those to be added are there."""
    now = clock.utc_now()
    for relation in change.remove:
        _delete(connection, tables.relations, _row(change.tenant, relation))
    rows = [{**_row(change.tenant, one), "created_at": now} for one in change.add]
    upsert(connection, tables.relations, rows)


def mark_relations(change: MarkRelations, connection: Connection) -> None:
    """How fresh to read; without a token, what is known of that stays."""
    if not change.token:
        return
    row = {"tenant_id": change.tenant, "token": change.token, "updated_at": clock.utc_now()}
    upsert(connection, tables.relation_tokens, [row], change=("token", "updated_at"))


def set_policy_module(change: SetPolicyModule, connection: Connection) -> None:
    """A module, or none any more."""
    _set_text(connection, tables.policy_modules, change)


def set_tool_file(change: SetToolFile, connection: Connection) -> None:
    """A tool file, or none any more."""
    _set_text(connection, tables.tool_files, change)


def read_tool_files(connection: Connection) -> Mapping[str, str]:
    """By name; what was put last comes last, so that it is the one that clashes."""
    column = tables.tool_files.c
    asked = sa.select(column.name, column.text).order_by(column.updated_at, column.name)
    found = connection.execute(asked)
    return {name: text for name, text in found}  # noqa: C416  a Row is no pair


def _set_text(
    connection: Connection, table: sa.Table, change: SetPolicyModule | SetToolFile
) -> None:
    key = {"name": change.name}
    if change.text is None:
        _delete(connection, table, key)
        return
    row = {**key, "text": change.text, "updated_at": clock.utc_now()}
    upsert(connection, table, [row], change=("text", "updated_at"))


def read_relations(
    connection: Connection, tenant: str, limit: int, after: Relation | None = None
) -> list[Relation]:
    """A tenant's relations, in order, from behind one on."""
    column = tables.relations.c
    order = (
        column.kind,
        column.name,
        column.relation,
        column.subject_kind,
        column.subject,
        column.subject_relation,
    )
    asked = sa.select(*order).where(column.tenant_id == tenant).order_by(*order).limit(limit)
    if after is not None:
        asked = asked.where(sa.tuple_(*order) > msgspec.structs.astuple(after))
    return [Relation(*row) for row in connection.execute(asked)]


def _row(tenant: str, relation: Relation) -> dict[str, Any]:
    return {
        "tenant_id": tenant,
        "subject_kind": relation.subject_kind,
        "subject": relation.subject,
        "subject_relation": relation.subject_relation,
        "kind": relation.kind,
        "relation": relation.relation,
        "name": relation.name,
    }


def _delete(connection: Connection, table: sa.Table, key: dict[str, Any]) -> None:
    matches: Iterable[sa.ColumnElement[bool]] = (
        table.c[name] == value for name, value in key.items()
    )
    connection.execute(table.delete().where(*matches))
