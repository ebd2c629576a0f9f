"""What `/v1/admin/…` gives, as shapes: they are published, and held against the answers."""

from typing import Any

from toolgate.executor.limits.usage import Line
from toolgate.gate.policy import Health
from toolgate.server.answers import UNSET, Page, Shape, Unset, WholeCall
from toolgate.server.answers import Call as CallLine
from toolgate.tenancy.capsule import Mode, NewerMessages
from toolgate.tenancy.keys import Role


class Noted(Shape, kw_only=True):
    """A change, as it is now; `notes` are worth a look."""

    notes: list[str] | Unset = UNSET


class Tenant(Shape, kw_only=True):
    """One tenant."""

    id: str
    agents: int


class Tenants(Page, kw_only=True):
    """By name."""

    tenants: list[Tenant]


class TenantPut(Shape, kw_only=True):
    """A tenant, with its plan where that was said."""

    id: str
    plan: str | Unset | None = UNSET


class Activated(Shape, kw_only=True):
    """One tool in a capsule."""

    enabled: bool
    overrides: dict[str, Any]


class Agent(Shape, kw_only=True):
    """An agent and its capsule."""

    id: str
    mode: Mode
    newer_messages: NewerMessages
    tools: dict[str, Activated]


class Agents(Page, kw_only=True):
    """By name."""

    agents: list[Agent]


class AgentPut(Noted, kw_only=True):
    """An agent, as it is now."""

    id: str
    tenant: str
    mode: Mode
    newer_messages: NewerMessages


class Removed(Shape, kw_only=True):
    """It is gone."""

    removed: bool


class Flags(Page, kw_only=True):
    """Tools that are switched on or off, for everyone and by tenant."""

    everyone: dict[str, bool]
    tenants: dict[str, dict[str, bool]]


class Flag(Noted, kw_only=True):
    """A flag; null: there is none any more."""

    tool: str
    tenant: str
    enabled: bool | None


class Activation(Noted, kw_only=True):
    """One tool in an agent's capsule."""

    tenant: str
    agent: str
    tool: str
    enabled: bool
    overrides: dict[str, Any]


class Key(Shape, kw_only=True):
    """A key without its secret."""

    id: str
    role: Role
    tenant: str
    agent: str
    user: str
    persona: str
    roles: list[str]
    created: str | None
    expires: str | None
    last_used: str | None


class Keys(Page, kw_only=True):
    """By tenant, agent and id."""

    keys: list[Key]


class FreshKey(Key, kw_only=True):
    """A key with its secret, which is shown once."""

    secret: str
    notes: list[str] | Unset = UNSET


class RotatedKey(FreshKey, kw_only=True):
    """A key in the place of another, which opens until then."""

    replaces: str
    replaced_until: str | None


class Revoked(Shape, kw_only=True):
    """It opens nothing any more."""

    id: str
    revoked: bool


class Layer(Noted, kw_only=True):
    """What one layer allows and denies."""

    tenant: str
    role: str
    name: str
    allow: list[str] | None
    deny: list[str]
    reason: str


class Layers(Page, kw_only=True):
    """By tenant, role and name."""

    layers: list[Layer]


class RoleLine(Shape, kw_only=True):
    """A role, and how many layers it has."""

    role: str
    tenant: str
    layers: int


class Roles(Page, kw_only=True):
    """By tenant and name."""

    roles: list[RoleLine]


class RolePut(Noted, kw_only=True):
    """A role that has permissions now."""

    role: str
    tenant: str


class Persona(Shape, kw_only=True):
    """A persona and what it is kept from."""

    id: str
    can_add_tools: bool | None
    tools: dict[str, dict[str, Any]]


class Personas(Page, kw_only=True):
    """By name."""

    personas: list[Persona]


class PersonaPut(Shape, kw_only=True):
    """Whether it may add tools."""

    id: str
    can_add_tools: bool | None


class Restriction(Shape, kw_only=True):
    """One tool of a persona."""

    id: str
    tool: str
    allowed: bool | None
    reason: str


class Relations(Page, kw_only=True):
    """As they are written: `tool:pay#executor@user:ann`."""

    relations: list[str]


class Related(Noted, kw_only=True):
    """What was added and removed."""

    tenant: str
    added: list[str]
    removed: list[str]


class Policies(Shape, kw_only=True):
    """The modules in the store, and how the engines are doing."""

    modules: dict[str, str]
    engines: list[Health]


class Module(Shape, kw_only=True):
    """A policy module."""

    name: str
    removed: bool | Unset = UNSET


class Plan(Shape, kw_only=True):
    """A tenant's plan and budgets."""

    plan: str | None
    budgets: dict[str, float]


class Budgets(Page, kw_only=True):
    """By tenant."""

    tenants: dict[str, Plan]


class Budget(Noted, kw_only=True):
    """The most of a metric in a month; null: there is no such budget any more."""

    tenant: str
    metric: str
    most: float | None


class Limit(Shape, kw_only=True):
    """So many calls in so many seconds."""

    calls: int
    per: float
    tenant: str
    persona: str
    tool: str


class Limits(Page, kw_only=True):
    """By tenant, persona and tool."""

    limits: list[Limit]


class LimitPut(Shape, kw_only=True):
    """A rate; null: there is none any more."""

    tenant: str
    persona: str
    tool: str
    limit: str | None


class Usage(Page, kw_only=True):
    """By tenant and metric."""

    usage: list[Line]


class Record(Shape, kw_only=True):
    """Who changed what, when and why."""

    id: int
    at_ns: int
    who: str
    why: str
    tenant: str
    change: str
    details: dict[str, Any]


class Records(Page, kw_only=True):
    """The newest first."""

    records: list[Record]


class LinkedCall(WholeCall, kw_only=True):
    """A call, with those that ran it again or took it back."""

    linked: list[CallLine]


class CatalogTool(Shape, kw_only=True):
    """One tool: how it stands for everyone, or for whom was asked."""

    name: str
    category: str
    effect: str
    state: str
    reason: str
    description: str
    origin: str


class Catalog(Page, kw_only=True):
    """By name."""

    tools: list[CatalogTool]


class ExportedTools(Shape, kw_only=True):
    """What an agent may call, as the format has it."""

    tools: Any


class SourceProblem(Shape, kw_only=True):
    """What is wrong with a source, and how many tools are there of it; `stale`: it failed, and they
    are from before.
    """

    source: str
    problem: str
    tools: int
    stale: bool


class Reloaded(Shape, kw_only=True):
    """How many tools there are, and which came, went or changed."""

    tools: int
    new: list[str]
    gone: list[str]
    changed: list[str]
    problems: list[SourceProblem]


class SourceHealth(Shape, kw_only=True):
    """How a source did when it was last asked."""

    source: str
    tools: int
    ok: bool
    problem: str
    foreign: bool
    stale: bool


class Ground(Shape, kw_only=True):
    """What it stands on: bytes that are free where the store is, and what programs run in."""

    free: int | None
    sandbox: str
    refusal: str
    is_named: bool


class HouseHealth(Shape, kw_only=True):
    """How each part of the house is, and what time it has."""

    parts: dict[str, str]
    ground: Ground
    programs: list[str]
    builtin_programs: list[str]
    now_ns: int
    tenants: int
    tools: int
    unusable: dict[str, str]
    sources: list[SourceHealth]
    engines: list[Health]
