"""What holds in every world: list equals call, a phase only narrows, the cache changes nothing."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate import random_worlds as any_
from tests.gate.random_worlds import CALLERS, NAMES, make, opened, uncached
from tests.thorough import some
from toolgate.caller import Caller, Context
from toolgate.errors import CallRefused, ToolNotFound
from toolgate.gate.asking import Rules
from toolgate.gate.gate import Gate
from toolgate.runtime import Runtime
from toolgate.tenancy.changes import (
    Change,
    SetActivation,
    SetLayer,
    SetPolicyModule,
    SetRelations,
    SetRestriction,
    SetTenantFlag,
)
from toolgate.tenancy.layer import roles_of

fewer = settings(max_examples=some(20, 50))
callers = st.sampled_from(CALLERS)


async def grants(gate: Gate, caller: Caller, name: str, args: dict[str, Any] | None = None) -> Any:
    try:
        grant = await gate.decide(caller, name, args)
    except CallRefused as refusal:
        return type(refusal), refusal.message, refusal.details
    assert (grant.caller, grant.spec.name) == (caller, name)
    return (
        grant.catalog_revision,
        grant.tenancy_revision,
        grant.needs_a_person,
        grant.policy_revision,
        grant.decision,
    )


async def answers(gate: Gate, caller: Caller) -> dict[str, Any]:
    """Everything that a gate can be asked about one caller."""
    granted = {name: await grants(gate, caller, name) for name in NAMES}
    large = {name: await grants(gate, caller, name, {"amount": 11}) for name in NAMES}
    return {
        "granted": granted,
        "large": large,
        "listed": [spec.name for spec in await gate.listing(caller)],
        "lacking": [(spec.name, verdict) for spec, verdict in await gate.unavailable(caller)],
        "tenant": [name for name in NAMES if await gate.tenant_has(caller, name)],
        "explained": [await gate.explain(caller, name) for name in NAMES],
    }


async def callable_(house: Runtime, caller: Caller) -> set[str]:
    """What really runs."""
    found: set[str] = set()
    for name in NAMES:
        try:
            assert (await house.call(name, caller=caller)).data == name
        except ToolNotFound:
            continue
        found.add(name)
    return found


@pytest.mark.req("G1", "G6", "C4")
@fewer
@given(any_.worlds, st.booleans())
def test_in_every_world_what_is_listed_is_exactly_what_can_be_called(
    world: list[Change],
    related: bool,  # noqa: FBT001
) -> None:
    async def hold() -> None:
        async with opened(world, relations=related) as house:
            for caller in CALLERS:
                listed = {spec.name for spec in await house.discover(caller)}
                assert listed == await callable_(house, caller)
                said = [await house.explain(name, caller=caller) for name in NAMES]
                assert listed == {one.tool for one in said if one.allowed}
                box = await house.toolbox(caller).refresh()
                has = {name for name in NAMES if box.is_tenant_available(name)}
                assert {one.name for one in box.unavailable()} == has - listed
                assert listed <= has, "an agent never has more than its tenant"

    asyncio.run(hold())


@pytest.mark.req("G3", "G6")
@fewer
@given(any_.worlds, st.integers(0, 20))
def test_in_every_world_explain_says_what_decide_does(world: list[Change], amount: int) -> None:
    async def hold() -> None:
        args = {"amount": amount}
        async with opened(world) as house:
            for caller in CALLERS:
                for name in NAMES:
                    said = await house.gate.explain(caller, name, args)
                    outcome = await grants(house.gate, caller, name, args)
                    refused = isinstance(outcome[0], type)
                    assert said.allowed is not refused
                    assert said.allowed or said.deciding.remedy

    asyncio.run(hold())


narrowing = st.one_of(
    st.builds(SetTenantFlag, any_.tenants, any_.names, st.just(value=False)),
    st.builds(SetActivation, any_.tenants, any_.agents, any_.names, st.just(value=False)),
    st.builds(
        SetLayer,
        st.just("new"),
        any_.layers,
        st.sampled_from(["", *any_.ROLES]),
        st.sampled_from(["", *any_.TENANTS]),
    ),
    st.builds(SetRestriction, st.just("clerk"), any_.names, st.just(value=False)),
    st.builds(SetRelations, any_.tenants, st.just(()), any_.related),
    st.sampled_from([*any_.RULES]).map(lambda name: SetPolicyModule(name, any_.module(name))),
)


@pytest.mark.req("G1", "G3", "G4", "G5")
@settings(max_examples=some(30, 100))
@given(any_.worlds, narrowing)
def test_what_takes_away_never_adds_a_tool_to_anyone(world: list[Change], narrower: Change) -> None:
    async def hold() -> None:
        async with opened(world) as house:
            # A role that is defined is one that its holders may have: that is no narrowing.
            defines = isinstance(narrower, SetLayer) and narrower.role
            before = {caller: {*await house.discover(caller)} for caller in CALLERS}
            known = {caller: _roles_are_known(house, caller) for caller in CALLERS}
            await make(house, narrower)
            for caller in CALLERS:
                if defines and not known[caller]:
                    continue
                after = {*await house.discover(caller)}
                assert after <= before[caller]
                own = getattr(narrower, "tenant", "")
                if own and caller.tenant != own:
                    assert after == before[caller], "what one tenant says is its own"

    asyncio.run(hold())


def _roles_are_known(house: Runtime, caller: Caller) -> bool:
    world = house.tenancy.world
    known = roles_of(world.everyone.layers) | roles_of(world.tenant(caller.tenant).layers)
    return not known or known.issuperset(caller.roles)


@pytest.mark.req("G4")
@settings(max_examples=some(30, 100))
@given(any_.worlds, callers, any_.steps, any_.steps, st.booleans(), st.booleans())
def test_a_task_and_a_delegation_only_take_away(
    world: list[Change],
    caller: Caller,
    task: tuple[Any, Any],
    handed: tuple[Any, Any],
    read_only: bool,  # noqa: FBT001
    no_web: bool,  # noqa: FBT001
) -> None:
    async def hold() -> None:
        async with opened(world) as house:
            before = {*await house.discover(caller)}
            context = Context(allow=task[0], deny=task[1], read_only=read_only, no_web=no_web)
            if caller.context == Context():
                inside = msgspec.structs.replace(caller, context=context)
                assert {*await house.discover(inside)} <= before
            if caller.agent:
                # To itself: another agent's capsule and relations may be others.
                step = caller.delegate(caller.agent, allow=handed[0], deny=handed[1])
                after = {*await house.discover(step)}
                assert after <= before
                second = step.delegate(caller.agent, allow=task[0], deny=task[1])
                assert {*await house.discover(second)} <= after
                if caller.user:
                    # The user's relations go with the task; the other agent adds none.
                    other = caller.delegate("intern", allow=handed[0], deny=handed[1])
                    assert {*await house.discover(other)} <= before

    asyncio.run(hold())


@pytest.mark.req("G1", "G6", "G8")
@settings(max_examples=some(10, 25))
@given(st.lists(st.one_of(any_.changes, st.sampled_from(["swap", "shrink"])), max_size=12))
def test_after_any_changes_the_cache_answers_like_a_gate_that_has_none(
    steps: list[Change | str],
) -> None:
    async def hold() -> None:
        async with opened() as house:
            whole = house.catalog.part("python")
            for step in steps:
                if isinstance(step, str):
                    house.catalog.put("python", whole[:2] if step == "shrink" else whole)
                else:
                    await make(house, step)
                for caller in CALLERS[::2]:
                    first = await answers(house.gate, caller)
                    assert first == await answers(house.gate, caller), "asked again"
                    assert _settled(first) == _settled(await answers(uncached(house), caller))

    asyncio.run(hold())


def _settled(found: dict[str, Any]) -> dict[str, Any]:
    """A grant keeps the world that it was given in, as long as nothing in it concerned it."""
    granted = {
        part: {
            name: one if isinstance(one[0], type) else (one[0], *one[2:])
            for name, one in found[part].items()
        }
        for part in ("granted", "large")
    }
    return found | granted


@pytest.mark.req("G3", "G6")
@fewer
@given(any_.worlds)
def test_observing_refuses_nothing_in_the_policy_phase(world: list[Change]) -> None:
    async def hold() -> None:
        async with opened(world, rules=Rules(observe=True)) as house:
            for caller in CALLERS:
                listed = {spec.name for spec in await house.discover(caller)}
                for name in NAMES:
                    said = await house.gate.explain(caller, name, {"amount": 11})
                    earlier = [one for one in said.verdicts if one.phase != "policy"]
                    allowed = all(one.allowed for one in earlier)
                    assert said.allowed is allowed is (name in listed)
                    outcome = await grants(house.gate, caller, name, {"amount": 11})
                    assert isinstance(outcome[0], type) is not allowed

    asyncio.run(hold())


async def test_a_tenant_on_record_alone_changes_no_decision() -> None:
    async with opened(relations=False) as house:
        before = [await house.discover(caller) for caller in CALLERS]
        assert any(before)
        for tenant in any_.TENANTS:
            await house.tenancy.add_tenant(tenant)
        assert before == [await house.discover(caller) for caller in CALLERS]
