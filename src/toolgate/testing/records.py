"""What the directory in memory has on record, and how a change makes it different."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.tenancy.capsule import Activation, Capsule
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
from toolgate.tenancy.persona import UNLISTED, Persona, Restriction
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.servers import NONE, Pin, Servers
from toolgate.tenancy.world import NOBODY, Everyone, Tenant

K = TypeVar("K")
V = TypeVar("V")
replace = msgspec.structs.replace


@dataclass
class Records:
    """Tenants of whom something is said, those on record, and what holds for everyone."""

    everyone: Everyone = field(default_factory=Everyone)
    said: dict[str, Tenant] = field(default_factory=dict[str, Tenant])
    on_record: frozenset[str] = frozenset()
    relations: dict[str, frozenset[Relation]] = field(
        default_factory=dict[str, frozenset[Relation]]
    )

    servers: Servers = NONE
    agreed: dict[str, dict[str, Pin]] = field(default_factory=dict[str, dict[str, Pin]])
    tool_files: Mapping[str, str] = field(default_factory=dict[str, str])

    def copied(self) -> "Records":
        """Another one to be changed; what it holds is never changed in place."""
        return Records(
            self.everyone,
            dict(self.said),
            self.on_record,
            dict(self.relations),
            self.servers,
            dict(self.agreed),
            self.tool_files,
        )

    def say(self, name: str, **fields: Any) -> None:
        """Replace these fields of a tenant."""
        self.said[name] = replace(self.said.get(name, NOBODY), **fields)


def _put(mapping: Mapping[K, V], key: K, value: V | None) -> Mapping[K, V]:
    """The mapping with this value, or without it."""
    changed = dict(mapping)
    if value is None:
        changed.pop(key, None)
    else:
        changed[key] = value
    return MappingProxyType(changed)


@singledispatch
def apply(change: Change, records: Records) -> None:
    """Make the change; those of keys are made by whoever holds them."""
    if not isinstance(change, (AddKey, ExpireKey, FirstKeys, RevokeKey)):
        raise TypeError(f"no way to keep a {type(change).__name__} in {type(records).__name__}")


@apply.register
def _tool_flag(change: SetToolFlag, records: Records) -> None:
    flags = _put(records.everyone.flags, change.tool, change.enabled)
    records.everyone = replace(records.everyone, flags=flags)


@apply.register
def _tenant_flag(change: SetTenantFlag, records: Records) -> None:
    flags = records.said.get(change.tenant, NOBODY).flags
    records.say(change.tenant, flags=_put(flags, change.tool, change.enabled))


@apply.register
def _tenant(change: AddTenant, records: Records) -> None:
    records.on_record |= {change.tenant}
    records.said.setdefault(change.tenant, NOBODY)


@apply.register
def _agent(change: SetAgent, records: Records) -> None:
    if change.tenant not in records.on_record:
        raise InvalidRequest(f"There is no tenant {change.tenant!r}; nothing was changed.")
    tenant = records.said[change.tenant]
    capsule = tenant.capsules.get(change.agent, Capsule())
    capsule = replace(capsule, mode=change.mode or capsule.mode)
    records.say(
        change.tenant,
        capsules=_put(tenant.capsules, change.agent, capsule),
        removed=tenant.removed - {change.agent},
    )


@apply.register
def _newer_messages(change: SetNewerMessages, records: Records) -> None:
    capsules = records.said.get(change.tenant, NOBODY).capsules
    capsule = capsules.get(change.agent)
    if capsule is None:
        raise InvalidRequest(f"There is no agent {change.agent!r}; nothing was changed.")
    capsule = replace(capsule, newer_messages=change.newer_messages)
    records.say(change.tenant, capsules=_put(capsules, change.agent, capsule))


@apply.register
def _activation(change: SetActivation, records: Records) -> None:
    capsules = records.said.get(change.tenant, NOBODY).capsules
    capsule = capsules.get(change.agent)
    if capsule is None:
        raise InvalidRequest(f"There is no agent {change.agent!r}; nothing was changed.")
    overrides: Mapping[str, Any] = MappingProxyType(copy.deepcopy(dict(change.overrides)))
    activation = Activation(change.enabled, overrides)
    active = _put(capsule.activations, change.tool, activation)
    changed = _put(capsules, change.agent, replace(capsule, activations=active))
    records.say(change.tenant, capsules=changed)


@apply.register
def _remove_agent(change: RemoveAgent, records: Records) -> None:
    tenant = records.said.get(change.tenant, NOBODY)
    if change.agent not in tenant.capsules:
        raise InvalidRequest(
            f"There is no agent {change.agent!r} of tenant {change.tenant!r}; nothing was changed."
        )
    records.say(
        change.tenant,
        capsules=_put(tenant.capsules, change.agent, None),
        removed=tenant.removed | {change.agent},
    )


@apply.register
def _layer(change: SetLayer, records: Records) -> None:
    whose = records.said.get(change.tenant, NOBODY) if change.tenant else records.everyone
    layers = _put(whose.layers, (change.role, change.name), change.layer)
    if change.tenant:
        records.say(change.tenant, layers=layers)
    else:
        records.everyone = replace(records.everyone, layers=layers)


@apply.register
def _persona(change: SetPersona, records: Records) -> None:
    persona = records.everyone.personas.get(change.persona, UNLISTED)
    _keep(records, change.persona, replace(persona, can_add_tools=change.can_add_tools))


@apply.register
def _restriction(change: SetRestriction, records: Records) -> None:
    persona = records.everyone.personas.get(change.persona, UNLISTED)
    row = None if change.allowed is None else Restriction(change.allowed, change.reason)
    restrictions = _put(persona.restrictions, change.tool, row)
    _keep(records, change.persona, replace(persona, restrictions=restrictions))


def _keep(records: Records, name: str, persona: Persona) -> None:
    kept = _put(records.everyone.personas, name, None if persona == UNLISTED else persona)
    records.everyone = replace(records.everyone, personas=kept)


@apply.register
def _relations(change: SetRelations, records: Records) -> None:
    held = records.relations.get(change.tenant, frozenset())
    records.relations[change.tenant] = held - {*change.remove} | {*change.add}


@apply.register
def _mark(change: MarkRelations, records: Records) -> None:
    if change.token:
        records.say(change.tenant, relations_token=change.token)


@apply.register
def _policy(change: SetPolicyModule, records: Records) -> None:
    policies = _put(records.everyone.policies, change.name, change.text)
    records.everyone = replace(records.everyone, policies=policies)


@apply.register
def _tool_file(change: SetToolFile, records: Records) -> None:
    others = _put(records.tool_files, change.name, None)
    records.tool_files = _put(others, change.name, change.text)


@apply.register
def _server(change: SetServer, records: Records) -> None:
    if change.settings is None:
        records.agreed.pop(change.name, None)
    added = _put(records.servers.added, change.name, change.settings)
    records.servers = Servers(added=added, pins=_pins(records))


@apply.register
def _pin(change: PinTools, records: Records) -> None:
    if change.first and change.server in records.agreed:
        raise InvalidRequest(f"The server {change.server!r} was seen before; nothing was changed.")
    records.agreed[change.server] = records.agreed.get(change.server, {}) | dict(change.tools)
    records.servers = replace(records.servers, pins=_pins(records))


def _pins(records: Records) -> Mapping[str, Mapping[str, str]]:
    return {
        server: {tool: pin.fingerprint for tool, pin in pins.items()}
        for server, pins in records.agreed.items()
    }


@apply.register
def _plan(change: SetPlan, records: Records) -> None:
    if change.tenant in records.on_record:
        records.say(change.tenant, plan=change.plan or "")


@apply.register
def _budget(change: SetBudget, records: Records) -> None:
    budgets = records.said.get(change.tenant, NOBODY).budgets
    records.say(change.tenant, budgets=_put(budgets, change.metric, change.most))


@apply.register
def _rate_limit(change: SetRateLimit, records: Records) -> None:
    whose = records.said.get(change.tenant, NOBODY) if change.tenant else records.everyone
    rates = _put(whose.rates, (change.persona, change.tool), change.limit)
    if change.tenant:
        records.say(change.tenant, rates=rates)
    else:
        records.everyone = replace(records.everyone, rates=rates)
