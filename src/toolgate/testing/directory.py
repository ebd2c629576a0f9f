"""The world in memory, with the rules of the one in tables; everything is gone when it is."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from types import MappingProxyType

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.tenancy.capsule import Activation, Capsule
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
from toolgate.tenancy.keys import Key, no_holder
from toolgate.tenancy.world import World


@dataclass
class _Records:
    """What is on record. A change is made to a copy, which then takes the old one's place."""

    revision: int = 0
    tenants: set[str] = field(default_factory=set[str])
    tool_flags: dict[str, bool] = field(default_factory=dict[str, bool])
    tenant_flags: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    capsules: dict[tuple[str, str], Capsule] = field(default_factory=dict[tuple[str, str], Capsule])
    keys: dict[str, Key] = field(default_factory=dict[str, Key])


class MemoryDirectory:
    """The directory port over dictionaries."""

    def __init__(self) -> None:
        self._records = _Records()

    async def revision(self) -> int:
        """How many times the world was changed."""
        return self._records.revision

    async def load(self) -> World:
        """The whole world."""
        records = self._records
        return World(
            revision=records.revision,
            tenants=frozenset(records.tenants),
            tool_flags=MappingProxyType(records.tool_flags),
            tenant_flags=MappingProxyType(
                {tenant: flags for tenant, flags in records.tenant_flags.items() if flags}
            ),
            capsules=MappingProxyType(records.capsules),
            keys=MappingProxyType(
                {key.digest: key for key in records.keys.values() if not key.revoked}
            ),
        )

    async def put(self, changes: tuple[Change, ...]) -> None:
        """All of the changes, or none."""
        records = _copied(self._records)
        for change in changes:
            _apply(change, records)
        records.revision += 1
        self._records = records


def _copied(records: _Records) -> _Records:
    return _Records(
        records.revision,
        set(records.tenants),
        dict(records.tool_flags),
        {tenant: dict(flags) for tenant, flags in records.tenant_flags.items()},
        dict(records.capsules),
        dict(records.keys),
    )


def _set(flags: dict[str, bool], tool: str, enabled: bool | None) -> None:  # noqa: FBT001
    if enabled is None:
        flags.pop(tool, None)
    else:
        flags[tool] = enabled


@singledispatch
def _apply(change: Change, records: _Records) -> None:
    raise TypeError(f"no way to keep a {type(change).__name__} at {records.revision}")


@_apply.register
def _tool_flag(change: SetToolFlag, records: _Records) -> None:
    _set(records.tool_flags, change.tool, change.enabled)


@_apply.register
def _tenant_flag(change: SetTenantFlag, records: _Records) -> None:
    _set(records.tenant_flags.setdefault(change.tenant, {}), change.tool, change.enabled)


@_apply.register
def _tenant(change: AddTenant, records: _Records) -> None:
    records.tenants.add(change.tenant)


@_apply.register
def _agent(change: SetAgent, records: _Records) -> None:
    if change.tenant not in records.tenants:
        raise InvalidRequest(f"There is no tenant {change.tenant!r}; nothing was changed.")
    capsule = records.capsules.get((change.tenant, change.agent), Capsule())
    capsule = msgspec.structs.replace(capsule, mode=change.mode or capsule.mode)
    records.capsules[change.tenant, change.agent] = capsule


@_apply.register
def _activation(change: SetActivation, records: _Records) -> None:
    capsule = records.capsules.get((change.tenant, change.agent))
    if capsule is None:
        raise InvalidRequest(f"There is no agent {change.agent!r}; nothing was changed.")
    overrides: Mapping[str, object] = MappingProxyType(copy.deepcopy(dict(change.overrides)))
    activations = {**capsule.activations, change.tool: Activation(change.enabled, overrides)}
    records.capsules[change.tenant, change.agent] = Capsule(
        capsule.mode, MappingProxyType(activations)
    )


@_apply.register
def _first_keys(change: FirstKeys, records: _Records) -> None:  # noqa: ARG001
    if records.keys:
        raise InvalidRequest("There were keys before; nothing was changed.")


@_apply.register
def _add_key(change: AddKey, records: _Records) -> None:
    key = change.key
    on_record = (
        (key.tenant, key.agent) in records.capsules if key.agent else key.tenant in records.tenants
    )
    if not on_record:
        raise no_holder(key)
    taken = {key.digest for key in records.keys.values()}
    if change.key.id in records.keys or change.key.digest in taken:
        raise InvalidRequest(f"The key {change.key.id!r} is on record; nothing was changed.")
    records.keys[change.key.id] = change.key


@_apply.register
def _revoke_key(change: RevokeKey, records: _Records) -> None:
    key = records.keys.get(change.id)
    if key is None:
        raise InvalidRequest(f"There is no key {change.id!r}; nothing was revoked.")
    records.keys[change.id] = msgspec.structs.replace(key, revoked=True)
