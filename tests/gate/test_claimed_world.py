"""A side effect is begun only in the world that it was decided on, whoever changed that world."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.gate.unguarded import begun_in_any_world
from tests.house import ME
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED
from toolgate import Call, Caller, Extension, Priority, Toolgate, Turn, tool
from toolgate.call import Event
from toolgate.errors import PolicyUnavailable, ToolNotFound
from toolgate.executor.recording.twins import Twins
from toolgate.settings.settings import Settings, Store

pytestmark = pytest.mark.req("G1", "S3")
WARM_AND_COLD = pytest.mark.parametrize("warm", [1, 0], ids=["warm", "cold"])
ran: list[str] = []


@tool(effect="irreversible")
async def effect(call: Call) -> str:
    """Leave a mark."""
    ran.append(call.id)
    return call.id


@tool(effect="irreversible", rate_limit="1/minute")
async def seldom() -> None:
    """Once a minute."""
    ran.append("seldom")


class Between(Extension):
    """What happens once a call was decided on, and before it is begun."""

    priority = Priority.NORMAL

    def __init__(self) -> None:
        self.calls = 0
        self.happens: Callable[[], Awaitable[None]] | None = None
        self.once = True

    async def before(self, _call: Call) -> None:
        self.calls += 1
        happens = self.happens
        if happens is not None:
            if self.once:
                self.happens = None
            await happens()


class Nodes(NamedTuple):
    here: Toolgate
    there: Toolgate
    between: Between

    async def warmed(self) -> None:
        """A call that went well, which nothing below counts."""
        await self.here.call("effect", caller=ME)
        ran.clear()
        self.between.calls = 0


@pytest.fixture(params=SHARED)
async def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Nodes]:
    """Two gates on one store; what happens between decision and claim does so at the first."""
    ran.clear()
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'toolgate.db'}"
        if request.param != FILE:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        settings, between = Settings(root=tmp_path, store=Store(url=url)), Between()
        here = await stack.enter_async_context(Toolgate.open(settings, extensions=(between,)))
        there = await stack.enter_async_context(Toolgate.open(settings))
        for gate in (here, there):
            gate.add(effect, seldom)
        # Few enough to notice what a call that did not run would keep of them.
        await there.tenancy.set_budget("acme", "tool_calls", 3)
        yield Nodes(here, there, between)


async def used(gate: Toolgate) -> float:
    """What the tenant's calls cost."""
    [line] = [one for one in await gate.usage.lines(tenant="acme") if one.metric == "tool_calls"]
    return line.used


def counted(gate: Toolgate, name: str = "effect") -> dict[str, int]:
    """How its calls ended, as the meter has it."""
    found = gate.watch.meter.calls.get(("acme", "billing", name))
    return {} if found is None else {key: value for key, value in found.statuses.items() if value}


async def touched(nodes: Nodes) -> None:
    """Something of the caller's own tenant, that lets it call as before."""
    await nodes.there.tenancy.set_tenant_tool("acme", "effect", enabled=True)


async def unconcerned(nodes: Nodes) -> None:
    """Something of another tenant."""
    await nodes.there.tenancy.add_tenant("umbrella")


async def revoke(nodes: Nodes) -> None:
    await nodes.there.tenancy.set_tool("effect", enabled=False)


@WARM_AND_COLD
async def test_what_another_node_revokes_before_the_claim_does_not_run(
    nodes: Nodes, warm: int
) -> None:
    here, told = nodes.here, list[Event]()
    if warm:
        await nodes.warmed()
    before, metered = await used(here), counted(here)
    rows = await here.journal.entries("acme")
    nodes.between.happens = lambda: revoke(nodes)
    with pytest.raises(ToolNotFound):
        await here.call("effect", caller=ME, turn=Turn(group="t", id="t1", emit=told.append))
    assert nodes.between.calls == 1, "it was decided on, and revoked then"
    assert ran == []
    assert await here.journal.entries("acme") == rows
    assert await used(here) == before
    assert told == []
    assert counted(here) == metered
    assert here.watch.meter.denied == {("effect", ""): 1}
    assert here.watch.meter.refused == {("tool_not_found",): 1}


@WARM_AND_COLD
async def test_without_the_guard_it_would_run(
    nodes: Nodes, warm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    if warm:
        await nodes.warmed()
    monkeypatch.setattr(Twins, "_begun", begun_in_any_world)
    nodes.between.happens = lambda: revoke(nodes)
    assert (await nodes.here.call("effect", caller=ME)).ok
    assert len(ran) == 1


@WARM_AND_COLD
@pytest.mark.parametrize("own", [True, False], ids=["own tenant", "another tenant"])
async def test_a_change_that_is_not_the_callers_affair_lets_it_run_once(
    nodes: Nodes, warm: int, *, own: bool
) -> None:
    here, told = nodes.here, list[Event]()
    if warm:
        await nodes.warmed()
    spent = await used(here)
    nodes.between.happens = lambda: touched(nodes) if own else unconcerned(nodes)
    turn = Turn(group="t", id="t1", emit=told.append)
    output = await here.call("effect", caller=ME, turn=turn)
    assert output.data == output.call_id == ran[0]
    assert len(ran) == 1
    assert nodes.between.calls == (2 if own else 1), "decided anew where it may concern it"
    rows = await here.journal.entries("acme")
    assert [str(row.state) for row in rows] == ["succeeded"] * (1 + warm)
    assert await used(here) == spent + 1
    assert [event.call_id for event in told] == [output.call_id] * 2, "begun, and ended"
    assert counted(here) == {"success": 1 + warm}
    assert here.watch.meter.refused == {}


async def test_deciding_anew_uses_no_more_of_a_rate_limit(nodes: Nodes) -> None:
    nodes.between.happens = lambda: touched(nodes)
    assert (await nodes.here.call("seldom", caller=ME)).ok
    assert ran == ["seldom"]
    with pytest.raises(Exception, match="Too many calls"):
        await nodes.here.call("seldom", caller=ME)


async def test_a_person_who_has_to_agree_since_a_moment_ago_is_asked(nodes: Nodes) -> None:
    await nodes.warmed()
    care = {"requires_approval": True}
    nodes.between.happens = lambda: nodes.there.tenancy.activate(
        "acme", "billing", "effect", overrides=care
    )
    output = await nodes.here.call("effect", caller=ME)
    assert output.status == "pending_approval"
    assert ran == []
    [asked] = await nodes.there.approvals.list("acme")
    await nodes.there.approvals.approve(asked.id, by="boss")
    nodes.between.happens = lambda: touched(nodes)
    assert (await nodes.here.call("effect", caller=ME)).ok, "an approval outlives other changes"
    assert len(ran) == 1


async def test_an_answer_on_record_is_not_for_who_was_revoked_meanwhile(nodes: Nodes) -> None:
    here = nodes.here
    first = await here.call("effect", caller=ME, idempotency_key="k")
    again = await here.call("effect", caller=ME, idempotency_key="k")
    assert (again.data, again.cached) == (first.data, True), "the positive control"
    nodes.between.happens = lambda: revoke(nodes)
    with pytest.raises(ToolNotFound):
        await here.call("effect", caller=ME, idempotency_key="k")
    assert ran == [first.call_id]


@WARM_AND_COLD
async def test_a_world_that_never_rests_is_told_as_such(nodes: Nodes, warm: int) -> None:
    here, between = nodes.here, nodes.between
    if warm:
        await nodes.warmed()
    before, metered = await used(here), counted(here)

    async def change() -> None:
        await touched(nodes)

    between.happens, between.once = change, False
    with pytest.raises(PolicyUnavailable, match=r"again and again.*Nothing ran") as refused:
        await here.call("effect", caller=ME)
    assert refused.value.retryable
    assert ran == []
    assert await used(here) == before
    assert counted(here) == metered
    assert here.watch.meter.refused == {("policy_unavailable",): 1}
    between.happens = None
    assert (await here.call("effect", caller=ME)).ok, "once it rests"


async def test_twins_that_wait_for_one_of_them_are_decided_anew_as_well(nodes: Nodes) -> None:
    """Who waited for an answer is told it only in a world that lets it be asked for."""
    here, told = nodes.here, list[Any]()

    async def ask_and_revoke() -> None:
        told.append(await nodes.there.call("effect", caller=ME, idempotency_key="k"))
        await revoke(nodes)

    nodes.between.happens = ask_and_revoke
    with pytest.raises(ToolNotFound):
        await here.call("effect", caller=ME, idempotency_key="k")
    assert [output.call_id for output in told] == ran


async def test_grants_that_followed_a_newer_world_say_so(nodes: Nodes) -> None:
    here = nodes.here
    await nodes.warmed()
    grant = here.gate.known(ME, "effect")
    assert grant is not None
    await here.tenancy.add_tenant("umbrella")
    assert here.gate.known(ME, "effect") is None, "to be looked at"
    followed = await here.gate.decide(ME, "effect")
    assert followed.tenancy_revision == here.tenancy.world.revision > grant.tenancy_revision
    assert followed == msgspec.structs.replace(
        grant, tenancy_revision=here.tenancy.world.revision
    ), "nothing else of it has changed"
    assert here.gate.known(ME, "effect") == followed
    await here.call("effect", caller=ME)
    assert nodes.between.calls == 1, "begun in the first attempt"


async def test_callers_do_not_share_what_was_revoked_from_one_of_them(nodes: Nodes) -> None:
    await nodes.warmed()
    theirs = Caller(tenant="umbrella", agent="billing")
    await nodes.here.call("effect", caller=theirs)

    async def theirs_alone() -> None:
        await nodes.there.tenancy.set_tenant_tool("umbrella", "effect", enabled=False)

    nodes.between.happens = theirs_alone
    assert (await nodes.here.call("effect", caller=ME)).ok
    with pytest.raises(ToolNotFound):
        await nodes.here.call("effect", caller=theirs)
    assert len(ran) == 2
