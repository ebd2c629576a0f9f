"""The world in memory, with the rules of the one in tables; everything is gone when it is."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.tenancy import account
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import AddKey, Change, ExpireKey, FirstKeys, RemoveAgent, RevokeKey
from toolgate.tenancy.directory import UNSIGNED
from toolgate.tenancy.keys import Key, no_holder
from toolgate.tenancy.parts import RELATIONS, touched
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.world import NOBODY, World
from toolgate.testing.records import Records, apply


class MemoryDirectory:
    """The directory port over dictionaries. A change is made to a copy, which takes their place."""

    def __init__(self) -> None:
        self._records = Records()
        self._keys: Mapping[str, Key] = {}
        self._audit: tuple[Record, ...] = ()
        self._uses: dict[str, int] = {}
        self._world = World()

    async def revision(self) -> int:
        """How many times the world was changed."""
        return self._world.revision

    async def load(self, since: World | None = None) -> World:  # noqa: ARG002  it is all at hand
        """The world; what did not change is the same object as before."""
        return self._world

    async def put(self, changes: tuple[Change, ...], actor: Actor = UNSIGNED) -> None:
        """All of the changes and what is noted of them, or none."""
        records, keys = self._records.copied(), dict(self._keys)
        for change in changes:
            _apply_to_keys(change, records, keys)
            apply(change, records)
        log = self._noted(changes, keys, actor)
        self._world = _world(self._world, changes, records, keys)
        self._records, self._keys, self._audit = records, keys, log

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed, the newest first."""
        found = [
            record
            for record in reversed(self._audit)
            if (tenant is None or record.tenant == tenant)
            and (before is None or record.id < before)
        ]
        return found[:limit]

    async def relations(
        self, tenant: str, *, limit: int, after: Relation | None = None
    ) -> Sequence[Relation]:
        """A tenant's relations, in order."""
        found = sorted(self._records.relations.get(tenant, ()))
        return [one for one in found if after is None or one > after][:limit]

    async def definitions(self, server: str) -> Mapping[str, Mapping[str, Any]]:
        """What is agreed to of a server's tools."""
        return {tool: pin.definition for tool, pin in self._records.agreed.get(server, {}).items()}

    async def tool_files(self) -> Mapping[str, str]:
        """The tool files that are kept here, by name."""
        return dict(self._records.tool_files)

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Of keys, by id, the moment of their last use."""
        self._uses.update({id_: at for id_, at in uses.items() if at > self._uses.get(id_, 0)})

    async def uses(self) -> Mapping[str, int]:
        """When each key was last used, of those that were."""
        return dict(self._uses)

    def _noted(
        self, changes: tuple[Change, ...], keys: Mapping[str, Key], actor: Actor
    ) -> tuple[Record, ...]:
        now = clock.unix_ns()
        return (
            *self._audit,
            *(
                Record(
                    id=len(self._audit) + number,
                    at_ns=now,
                    who=actor.who,
                    why=actor.why,
                    tenant=keys[change.id].tenant
                    if isinstance(change, (RevokeKey, ExpireKey))
                    else account.tenant_of(change),
                    change=account.name_of(change),
                    details=MappingProxyType(account.details_of(change)),
                )
                for number, change in enumerate(changes, start=1)
            ),
        )


def _world(
    before: World, changes: tuple[Change, ...], records: Records, keys: Mapping[str, Key]
) -> World:
    revision = before.revision + 1
    for part in touched(changes):
        if part.startswith(RELATIONS):
            name = part.removeprefix(RELATIONS)
            tenant = records.said.get(name, NOBODY)
            records.said[name] = msgspec.structs.replace(tenant, relations=revision)
    held = {key.digest: key for key in keys.values() if not key.revoked}
    return World(
        revision=revision,
        everyone=records.everyone,
        tenants=MappingProxyType(
            {
                name: tenant
                for name, tenant in records.said.items()
                if name in records.on_record or tenant != NOBODY
            }
        ),
        keys=before.keys if held == before.keys else MappingProxyType(held),
        servers=records.servers,
    )


def _apply_to_keys(change: Change, records: Records, keys: dict[str, Key]) -> None:
    match change:
        case FirstKeys() if keys:
            raise InvalidRequest("There were keys before; nothing was changed.")
        case AddKey(key):
            _add_key(key, records, keys)
        case RevokeKey(id_):
            if id_ not in keys:
                raise InvalidRequest(f"There is no key {id_!r}; nothing was revoked.")
            keys[id_] = msgspec.structs.replace(keys[id_], revoked=True)
        case ExpireKey(id_, at_ns):
            if id_ not in keys or keys[id_].revoked:
                raise InvalidRequest(f"There is no key {id_!r}; nothing was changed.")
            end_ns = min(at_ns, keys[id_].expires_ns or at_ns)
            keys[id_] = msgspec.structs.replace(keys[id_], expires_ns=end_ns)
        case RemoveAgent(tenant, agent):
            for id_, key in keys.items():
                if (key.tenant, key.agent) == (tenant, agent):
                    keys[id_] = msgspec.structs.replace(key, revoked=True)
        case _:
            pass


def _add_key(key: Key, records: Records, keys: dict[str, Key]) -> None:
    tenant = records.said.get(key.tenant, NOBODY)
    if not (key.agent in tenant.capsules if key.agent else key.tenant in records.on_record):
        raise no_holder(key)
    if key.id in keys or key.digest in {other.digest for other in keys.values()}:
        raise InvalidRequest(f"The key {key.id!r} is on record; nothing was changed.")
    keys[key.id] = key
