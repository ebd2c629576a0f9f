"""Worlds that nobody thought of: a few tenants, callers and tools, and every kind of change."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from tests.engines.relation_engines import InTables
from tests.gate.engines import Tenants
from toolgate import Caller, tool
from toolgate.caller import Context
from toolgate.engines.bundle import Bundle
from toolgate.engines.keeper import Keeper
from toolgate.engines.modules import Modules
from toolgate.engines.rego import Rego
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.decision import Decisions
from toolgate.gate.gate import Gate
from toolgate.gate.shared import NoShared, Shared
from toolgate.runtime import Runtime
from toolgate.store import tables
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.changes import (
    Change,
    SetActivation,
    SetAgent,
    SetLayer,
    SetPersona,
    SetPolicyModule,
    SetRelations,
    SetRestriction,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.relation import Relation, parse
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.house import in_memory

TENANTS = ("acme", "umbrella")
AGENTS = ("billing", "intern")
ROLES = ("worker", "boss")


def _made(name: str, effect: str = "pure", **fields: Any) -> Callable[[], str]:
    def run() -> str:
        return name

    run.__name__ = name
    return tool(effect=effect, **fields)(run)  # pyright: ignore[reportArgumentType]


FUNCTIONS = (
    _made("plain"),
    _made("reserved", enabled=False),
    _made("chain_only", allowed_callers=["chain"]),
    _made("query", category="data"),
    _made("fetch", category="web", permissions=["network"]),
    _made("pay", effect="irreversible", tags=["money"]),
)
NAMES = tuple(function.__name__ for function in FUNCTIONS)
CALLERS = (
    Caller(tenant="acme", agent="billing", user="ann"),
    Caller(tenant="acme", agent="billing", user="bob", persona="clerk", roles=("worker",)),
    Caller(tenant="acme", agent="intern", roles=("worker", "boss")),
    Caller(tenant="acme", agent="intern", user="ann", roles=("stranger",)),
    Caller(tenant="acme", agent="billing", context=Context(read_only=True)),
    Caller(tenant="acme", agent="chief", user="ann").delegate("billing", deny=["group:web"]),
    Caller(tenant="umbrella", agent="billing", user="ann", persona="clerk"),
    Caller(tenant="unheard", agent="stranger", user="ann"),
    Caller(tenant="acme"),
)
RULES = {
    "money": 'deny contains "no money" if "money" in input.tool.tags',
    "clerks": 'banned["query"] contains "not for clerks" if input.caller.persona == "clerk"',
    "acme": 'deny contains "not in acme" if {\n  input.caller.tenant == "acme"\n'
    '  input.tool.category == "web"\n}',
    "args": 'restrict contains "too much" if input.args.amount > 10',
}
RELATED = tuple(
    parse(text)
    for text in (
        *(f"tool:{name}#executor@user:ann" for name in NAMES),
        *(f"tool:{name}#owner@group:staff#member" for name in NAMES[:4]),
        *("group:staff#member@user:bob", "group:staff#member@group:inner#member"),
        *("group:inner#member@user:ann", "group:inner#member@group:staff#member"),
        *("tool:pay#executor@agent:intern", "tool:plain#executor@agent:billing#user"),
        *("agent:billing#user@user:bob", "tool:plain#executor@agent:billing"),
    )
)

tenants, agents, names, roles = map(st.sampled_from, (TENANTS, AGENTS, NAMES, ROLES))
flags = st.sampled_from([True, False, None])
selectors = st.sampled_from(
    ["group:read", "group:write", "group:web", "group:all", "category:data", "p*", *NAMES]
)
lists = st.lists(selectors, max_size=3).map(tuple)
layers = st.builds(Layer, allow=st.none() | lists, deny=lists)
steps = st.tuples(st.none() | lists, lists)
related = st.lists(st.sampled_from(RELATED), min_size=1, max_size=8, unique=True).map(tuple)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(SetToolFlag, names, flags),
    st.builds(SetTenantFlag, tenants, names, flags),
    st.builds(SetAgent, tenants, agents, st.sampled_from(Mode)),
    st.builds(SetActivation, tenants, agents, names, st.booleans()),
    st.builds(
        SetLayer,
        st.sampled_from(["one", "two"]),
        st.none() | layers,
        st.sampled_from(["", *ROLES]),
        st.sampled_from(["", *TENANTS]),
    ),
    st.builds(SetPersona, st.just("clerk"), flags),
    st.builds(SetRestriction, st.just("clerk"), names, flags),
    st.builds(SetRelations, tenants, related),
    st.builds(SetRelations, tenants, st.just(()), related),
    st.sampled_from([*RULES]).map(lambda name: SetPolicyModule(name, module(name))),
    st.sampled_from([*RULES]).map(lambda name: SetPolicyModule(name, None)),
)
worlds = st.lists(changes, max_size=10)


def module(name: str) -> str:
    return f"package toolgate\n\n{RULES[name]}\n"


@cache
def _bundle(stored: tuple[tuple[str, str], ...]) -> Bundle:
    return Modules().load(dict(stored))


class Remembered(Modules):
    """The same modules make the same policy, once."""

    def load(self, stored: Mapping[str, str] = MappingProxyType({})) -> Bundle:
        return _bundle(tuple(sorted(stored.items())))


class InMemory(Tenants):
    """Relations that may be there already."""

    async def write(self, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]) -> str:
        return await self._engine.put(tenant, add, [*remove, *add])


class Stored:
    """The modules on record, as soon as there is a record."""

    def __init__(self) -> None:
        self.house: Runtime | None = None
        self._none: Mapping[str, str] = MappingProxyType({})

    def __call__(self) -> Mapping[str, str]:
        if self.house is None:
            return self._none
        return self.house.tenancy.world.everyone.policies


@asynccontextmanager
async def opened(
    world: Iterable[Change] = (),
    *,
    relations: bool = True,
    rules: Rules | None = None,
    shared: Shared | None = None,
    decisions: Decisions | None = None,
) -> AsyncGenerator[Runtime]:
    """A house in that world, with Rego and relations in tables."""
    database = Sqlite(None)
    await database.write(tables.relations.create)
    kept = InMemory(InTables(database), "")
    stored, modules = Stored(), Remembered()
    policy = Keeper(modules, Rego(modules.load()), stored)
    try:
        async with in_memory(
            *FUNCTIONS,
            directory=MemoryDirectory(),
            engines=Engines(policy, kept if relations else None, shared=shared or NoShared()),
            decisions=decisions,
            relations=kept,
            rules=rules,
        ) as house:
            stored.house = house
            for change in world:
                await make(house, change)
            yield house
    finally:
        await database.close()


def uncached(house: Runtime, *, rules: Rules | None = None) -> Gate:
    """A gate of the same world that has decided nothing yet."""
    relations = house.gate._phases.relations  # pyright: ignore[reportPrivateUsage]
    policy = Rego(Remembered().load(house.tenancy.world.everyone.policies))
    return Gate(house.catalog, house.tenancy, Engines(policy, relations), rules=rules or Rules())


async def make(house: Runtime, change: Change) -> None:
    tenancy = house.tenancy
    match change:
        case SetToolFlag(tool_, enabled):
            await tenancy.set_tool(tool_, enabled)
        case SetTenantFlag(tenant, tool_, enabled):
            await tenancy.add_tenant(tenant)
            await tenancy.set_tenant_tool(tenant, tool_, enabled)
        case SetAgent(tenant, agent, mode):
            await tenancy.set_agent(tenant, agent, mode or Mode.ALL)
        case SetActivation(tenant, agent, tool_, enabled):
            await tenancy.activate(tenant, agent, tool_, enabled=enabled)
        case SetLayer(name, layer, role, tenant):
            await tenancy.set_layer(name, layer, role=role, tenant=tenant)
        case SetPersona(persona, may):
            await tenancy.set_persona(persona, may)
        case SetRestriction(persona, tool_, allowed):
            await tenancy.restrict(persona, tool_, allowed=allowed)
        case SetRelations(tenant, add, remove):
            await tenancy.relate(tenant, add=add, remove=remove)
        case SetPolicyModule(name, text):
            await tenancy.set_policy_module(name, text)
        case _:
            raise AssertionError(change)
