"""Keys in their table: read, made, ended, and when they were last used."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.store.tables import agents, api_keys, tenants
from toolgate.tenancy.changes import AddKey, ExpireKey, FirstKeys, RevokeKey
from toolgate.tenancy.keys import Key, Role, no_holder

_ROLES = frozenset(Role)


def read_keys(connection: Connection) -> dict[str, Key]:
    """Those that open something, or did until their time was up, by digest."""
    column = api_keys.c
    rows = connection.execute(
        sa.select(
            column.id,
            column.digest,
            column.role,
            column.tenant_id,
            column.agent_id,
            column.user_id,
            column.persona_id,
            column.roles,
            column.created_at,
            column.expires_ns,
        ).where(column.revoked.is_(False))
    )
    return {
        digest: Key(
            id=id_,
            digest=digest,
            role=Role(role),
            tenant=tenant,
            agent=agent,
            user=user,
            persona=persona,
            roles=tuple(roles),
            created_ns=clock.unix_of(created),
            expires_ns=expires_ns,
        )
        for id_, digest, role, tenant, agent, user, persona, roles, created, expires_ns in rows
        # A role that a newer version knows opens nothing here.
        if role in _ROLES
    }


def first_keys(change: FirstKeys, connection: Connection) -> None:  # noqa: ARG001
    """Only where there never was one."""
    if connection.execute(sa.select(api_keys.c.id).limit(1)).first() is not None:
        raise InvalidRequest("There were keys before; nothing was changed.")


def add_key(change: AddKey, connection: Connection) -> None:
    """Only for somebody on record."""
    key = change.key
    holder = sa.select(tenants.c.id).where(tenants.c.id == key.tenant)
    if key.agent:
        column = agents.c
        holder = sa.select(column.id).where(column.tenant_id == key.tenant, column.id == key.agent)
    if connection.execute(holder).first() is None:
        raise no_holder(key)
    connection.execute(
        api_keys.insert().values(
            id=key.id,
            digest=key.digest,
            role=key.role.value,
            tenant_id=key.tenant,
            agent_id=key.agent,
            user_id=key.user,
            persona_id=key.persona,
            roles=list(key.roles),
            revoked=key.revoked,
            created_at=clock.moment_of(key.created_ns),
            expires_ns=key.expires_ns,
        )
    )


def revoke_key(change: RevokeKey, connection: Connection) -> None:
    """It opens nothing any more."""
    found = connection.execute(
        api_keys.update().where(api_keys.c.id == change.id).values(revoked=True)
    )
    if not found.rowcount:
        # An operator who mistypes must not believe that the key is shut.
        raise InvalidRequest(f"There is no key {change.id!r}; nothing was revoked.")


def expire_key(change: ExpireKey, connection: Connection) -> None:
    """It opens nothing from then on."""
    end = api_keys.c.expires_ns
    sooner = sa.case((end == 0, change.at_ns), (end > change.at_ns, change.at_ns), else_=end)
    found = connection.execute(
        api_keys.update()
        .where(api_keys.c.id == change.id, api_keys.c.revoked.is_(False))
        .values(expires_ns=sooner)
    )
    if not found.rowcount:
        raise InvalidRequest(f"There is no key {change.id!r}; nothing was changed.")


def note_uses(connection: Connection, uses: Mapping[str, int]) -> None:
    """The moment of each one's last use; another node may know of a later one."""
    # In one order everywhere, so that two nodes cannot wait for each other.
    for id_, at_ns in sorted(uses.items()):
        connection.execute(
            api_keys.update()
            .where(api_keys.c.id == id_, api_keys.c.last_used_ns < at_ns)
            .values(last_used_ns=at_ns)
        )


def uses(connection: Connection) -> dict[str, int]:
    """When each was last used, of those that were."""
    column = api_keys.c
    rows = connection.execute(
        sa.select(column.id, column.last_used_ns).where(column.last_used_ns > 0)
    )
    return {id_: at_ns for id_, at_ns in rows}  # noqa: C416  a Row is no pair
