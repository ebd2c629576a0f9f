"""What holds in every world: list equals call, a phase only narrows, the cache changes nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate import Caller, tool
from toolgate.errors import ToolNotFound
from toolgate.gate.gate import Gate
from toolgate.runtime import Runtime
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.changes import (
    AddTenant,
    Change,
    SetActivation,
    SetAgent,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.house import in_memory

TENANTS = ("acme", "umbrella")
AGENTS = ("billing", "intern")


def made(name: str, **fields: Any) -> Callable[[], str]:
    def run() -> str:
        return name

    run.__name__ = name
    return tool(effect="pure", **fields)(run)


FUNCTIONS = (
    made("plain"),
    made("other"),
    made("reserved", enabled=False),
    made("chain_only", allowed_callers=["chain"]),
    made("both", allowed_callers=["direct", "chain"]),
)
NAMES = ("plain", "other", "reserved", "chain_only", "both")
# A stranger of each tenant, and of a tenant that nobody has heard of.
CALLERS = tuple(
    Caller(tenant=tenant, agent=agent)
    for tenant in (*TENANTS, "unheard")
    for agent in (*AGENTS, "stranger", "")
)

tenants, agents, names = (st.sampled_from(choices) for choices in (TENANTS, AGENTS, NAMES))
flags = st.sampled_from([True, False, None])
changes = st.one_of(
    st.builds(SetToolFlag, names, flags),
    st.builds(SetTenantFlag, tenants, names, flags),
    st.builds(SetAgent, tenants, agents, st.sampled_from(Mode)),
    st.builds(SetActivation, tenants, agents, names, st.booleans()),
)


async def make(house: Runtime, change: Change) -> None:
    tenancy = house.tenancy
    match change:
        case SetToolFlag():
            await tenancy.set_tool(change.tool, change.enabled)
        case SetTenantFlag():
            await tenancy.add_tenant(change.tenant)
            await tenancy.set_tenant_tool(change.tenant, change.tool, change.enabled)
        case SetAgent():
            await tenancy.set_agent(change.tenant, change.agent, change.mode or Mode.ALL)
        case SetActivation():
            await tenancy.activate(change.tenant, change.agent, change.tool, enabled=change.enabled)
        case _:
            raise AssertionError(change)


async def answers(house: Runtime, gate: Gate, caller: Caller) -> dict[str, Any]:
    """Everything that a gate can be asked about one caller."""
    granted = {name: await grants(gate, caller, name) for name in NAMES}
    return {
        "granted": granted,
        "listed": [spec.name for spec in await gate.listing(caller)],
        "lacking": [(spec.name, verdict) for spec, verdict in await gate.unavailable(caller)],
        "tenant": [name for name in NAMES if await gate.tenant_has(caller, name)],
        "explained": [gate.explain(caller, name) for name in NAMES],
    }


async def grants(gate: Gate, caller: Caller, name: str) -> Any:
    try:
        grant = await gate.decide(caller, name)
    except ToolNotFound:
        return None
    assert (grant.caller, grant.spec.name) == (caller, name)
    return grant.catalog_revision, grant.tenancy_revision, grant.needs_a_person


async def runs(house: Runtime, caller: Caller, name: str) -> bool:
    try:
        return (await house.call(name, caller=caller)).data == name
    except ToolNotFound:
        return False


@pytest.mark.req("G1", "C4")
@given(st.lists(changes, max_size=12))
def test_in_every_world_what_is_listed_is_exactly_what_can_be_called(world: list[Change]) -> None:
    async def hold() -> None:
        async with in_memory(*FUNCTIONS, directory=MemoryDirectory()) as house:
            for change in world:
                await make(house, change)
            for caller in CALLERS:
                listed = {spec.name for spec in await house.discover(caller)}
                assert listed == {name for name in NAMES if await runs(house, caller, name)}
                explained = {name for name in NAMES if house.explain(name, caller=caller).allowed}
                assert listed == explained
                box = house.toolbox(caller)
                has = {name for name in NAMES if box.is_tenant_available(name)}
                assert {one.name for one in box.unavailable()} == has - listed
                assert listed <= has, "an agent never has more than its tenant"

    asyncio.run(hold())


@pytest.mark.req("G1")
@given(st.lists(changes, max_size=8), tenants, agents, names, st.booleans())
def test_switching_off_anywhere_never_adds_a_tool_to_anyone(
    world: list[Change],
    tenant: str,
    agent: str,
    name: str,
    for_agent: bool,  # noqa: FBT001
) -> None:
    async def hold() -> None:
        async with in_memory(*FUNCTIONS, directory=MemoryDirectory()) as house:
            for change in world:
                await make(house, change)
            before = {caller: {*await house.discover(caller)} for caller in CALLERS}
            off = SetTenantFlag(tenant, name, enabled=False)
            await make(
                house, SetActivation(tenant, agent, name, enabled=False) if for_agent else off
            )
            for caller in CALLERS:
                after = {*await house.discover(caller)}
                assert after <= before[caller]
                if caller.tenant != tenant:
                    assert after == before[caller], "one tenant's flags are its own"

    asyncio.run(hold())


Step = Change | str


@pytest.mark.req("G1", "G6")
@given(st.lists(st.one_of(changes, st.sampled_from(["swap", "shrink"])), max_size=15))
def test_after_any_changes_the_cache_answers_like_a_gate_that_has_none(steps: list[Step]) -> None:
    async def hold() -> None:
        async with in_memory(*FUNCTIONS, directory=MemoryDirectory()) as house:
            whole = house.catalog.part("python")
            for step in steps:
                if isinstance(step, str):
                    house.catalog.put("python", whole[:2] if step == "shrink" else whole)
                else:
                    await make(house, step)
                for caller in CALLERS[::3]:
                    fresh = Gate(house.catalog, house.tenancy)
                    assert await answers(house, house.gate, caller) == await answers(
                        house, fresh, caller
                    )

    asyncio.run(hold())


async def test_a_tenant_on_record_alone_changes_no_decision() -> None:
    async with in_memory(*FUNCTIONS, directory=MemoryDirectory()) as house:
        before = [await house.discover(caller) for caller in CALLERS]
        for tenant in TENANTS:
            await house.tenancy.add_tenant(AddTenant(tenant).tenant)
        assert before == [await house.discover(caller) for caller in CALLERS]
