"""Which decisions may wait for the claim to be found out of date, and what world they name."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.gate.test_shifts import Waiting
from tests.house import ME, until
from toolgate import Call, Extension, Output, Priority, Toolgate, ToolgateError, tool
from toolgate.errors import ToolNotFound
from toolgate.gate.asking import Engines
from toolgate.gate.gate import Gate
from toolgate.runtime import Runtime
from toolgate.settings.execution import Approvals
from toolgate.settings.settings import Settings
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("G1", "S3")
ran: list[str] = []


@tool(effect="irreversible")
async def effect() -> None:
    """Leave a mark."""
    ran.append("effect")


@tool(effect="irreversible", requires_approval=True)
async def careful() -> None:
    """Leave a mark, once somebody agrees."""
    ran.append("careful")


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    ran.clear()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Tenancy]:
    """How often the store was looked at before a decision."""
    found: list[Tenancy] = []
    freshen = Tenancy.freshen

    async def noted(self: Tenancy) -> None:
        found.append(self)
        await freshen(self)

    monkeypatch.setattr(Tenancy, "freshen", noted)
    return found


def asking(house: Runtime, relations: Waiting, *, guarded: bool = True) -> Gate:
    return Gate(house.catalog, house.tenancy, Engines(relations=relations), guarded=guarded)


async def test_a_world_that_changes_while_relations_are_asked_is_the_one_that_is_named() -> None:
    """Else each claim would be out of date, for as long as the decision is kept."""
    relations = Waiting()
    async with in_memory(effect) as house:
        await house.tenancy.add_tenant("acme")
        gate = asking(house, relations)
        relations.meanwhile = lambda: house.tenancy.add_tenant("umbrella")
        grant = await gate.decide(ME, "effect")
        assert grant.tenancy_revision == house.tenancy.world.revision
        assert gate.known(ME, "effect") == grant
        assert await gate.decide(ME, "effect") == grant


async def test_what_nothing_has_to_be_asked_about_is_known(looks: list[Tenancy]) -> None:
    async with in_memory(effect) as house:
        gate = asking(house, Waiting())
        grant = await gate.decide(ME, "effect")
        assert len(looks) == 1
        assert gate.known(ME, "effect") is grant


@pytest.mark.parametrize("why", ["unguarded", "server", "person"])
async def test_otherwise_the_store_is_looked_at_before_each_decision(
    why: str, looks: list[Tenancy]
) -> None:
    relations, name = Waiting(), "careful" if why == "person" else "effect"
    relations.external = why == "server"
    async with in_memory(effect, careful) as house:
        gate = asking(house, relations, guarded=why != "unguarded")
        for number in range(3):
            assert gate.known(ME, name) is None
            await gate.decide(ME, name)
            assert len(looks) == number + 1


async def test_where_a_person_agrees_to_everything_the_store_is_looked_at_each_time(
    tmp_path: Path, looks: list[Tenancy]
) -> None:
    settings = Settings(root=tmp_path, approvals=Approvals(mode="always"))
    async with Toolgate.open(settings) as here, Toolgate.open(settings) as there:
        for gate in (here, there):
            gate.add(effect)
        for number in range(2):
            assert (await here.call("effect", caller=ME)).status == "pending_approval"
            [asked] = await there.approvals.list("acme")
            await there.approvals.approve(asked.id, by="boss")
            if number:
                await there.tenancy.set_tool("effect", enabled=False)
                with pytest.raises(ToolNotFound):
                    await here.call("effect", caller=ME)
            else:
                assert (await here.call("effect", caller=ME)).ok
            assert len(looks) == 2 * (number + 1)
            assert here.gate.known(ME, "effect") is None
    assert ran == ["effect"]


async def test_a_call_that_waited_for_a_person_is_begun_in_the_world_of_that_moment(
    tmp_path: Path,
) -> None:
    """What others change while somebody thinks about it does not make them be asked again."""
    settings = Settings(root=tmp_path)
    async with Toolgate.open(settings) as here, Toolgate.open(settings) as there:
        for gate in (here, there):
            gate.add(careful)
        waiting = asyncio.ensure_future(here.call("careful", caller=ME, wait_s=20))
        asked = await _asked(there)
        await there.tenancy.add_tenant("umbrella")
        await there.approvals.approve(asked, by="boss")
        assert (await waiting).ok
        assert ran == ["careful"]
        assert await there.approvals.list("acme") == []
        assert not here.watch.meter.refused


async def test_revoked_while_a_person_thought_about_it_it_is_not_begun(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    async with Toolgate.open(settings) as here, Toolgate.open(settings) as there:
        for gate in (here, there):
            gate.add(careful)
        waiting = asyncio.ensure_future(here.call("careful", caller=ME, wait_s=20))
        asked = await _asked(there)
        await there.tenancy.set_tool("careful", enabled=False)
        await there.approvals.approve(asked, by="boss")
        with pytest.raises(ToolNotFound):
            await waiting
    assert ran == []


class Excusing(Extension):
    """Has an answer for everything that fails, and does something before a call is begun."""

    priority = Priority.HIGHEST

    def __init__(self) -> None:
        self.happens: list[Callable[[], Awaitable[None]]] = []
        self.heard: list[str] = []

    async def before(self, _call: Call) -> None:
        while self.happens:
            await self.happens.pop()()

    async def failed(self, _call: Call, error: ToolgateError) -> Output:
        self.heard.append(error.code)
        return Output(status="error", data="never mind")


async def test_an_extension_does_not_hear_of_what_is_decided_anew(tmp_path: Path) -> None:
    """Nothing has failed, so there is nothing to be answered instead."""
    settings, excusing = Settings(root=tmp_path), Excusing()
    opened = Toolgate.open(settings, extensions=(excusing,))
    async with opened as here, Toolgate.open(settings) as there:
        here.add(effect)
        assert (await here.call("effect", caller=ME)).ok
        excusing.happens.append(lambda: there.tenancy.add_tenant("umbrella"))
        assert (await here.call("effect", caller=ME)).ok
    assert ran == ["effect"] * 2
    assert excusing.heard == []


async def _asked(gate: Toolgate) -> str:
    """The approval that a call waits for."""
    found: list[str] = []

    def seen() -> bool:
        return bool(found)

    async def look() -> None:
        while not found:
            found.extend(one.id for one in await gate.approvals.list("acme"))
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    await until(seen)
    await looking
    return found[0]


@pytest.mark.req("G8", "S6")
async def test_a_read_that_a_person_agreed_to_is_decided_anew_on_the_world_as_it_is(
    tmp_path: Path,
) -> None:
    """A read is not looked up before it is decided, but what uses an approval up is claimed."""
    seen: list[int] = []

    @tool(effect="pure", requires_approval=True)
    async def peek(number: int) -> int:
        seen.append(number)
        return number

    settings = Settings(root=tmp_path)
    async with Toolgate.open(settings) as here, Toolgate.open(settings) as there:
        here.add(peek)
        asked = await here.call("peek", {"number": 1}, caller=ME)
        assert asked.error is not None
        await here.approvals.approve(asked.error.details["approval_id"], by="boss", reason="ok")
        await there.tenancy.set_tenant_tool("acme", "echo", enabled=True)
        assert (await here.call("peek", {"number": 1}, caller=ME)).data == 1
    assert seen == [1]
