"""What changes while a decision is made: nothing runs that neither before nor after allows."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from toolgate import Caller, tool
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import CallRefused, PermissionDenied, StoreUnavailable, ToolNotFound
from toolgate.gate.asking import Engines
from toolgate.gate.gate import Gate
from toolgate.gate.policy import Health
from toolgate.runtime import Runtime
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.house import in_memory

ME = Caller(tenant="acme", agent="billing", user="ann")
LARGE = 'package toolgate\n\nrestrict contains "too much" if input.args.amount > 1000\n'
NO_PAY = 'package toolgate\n\ndeny contains "no payments" if input.tool.name == "pay"\n'
paid: list[int] = []


@tool(effect="irreversible")
async def pay(amount: int) -> None:
    """Pay."""
    paid.append(amount)


@pytest.fixture(autouse=True)
def nothing_is_paid() -> None:
    paid.clear()


class Shifting(Rego):
    """A policy that is swapped right after it has answered what may be seen."""

    async def visible(
        self, document: Mapping[str, Any], tools: Sequence[ToolSpec]
    ) -> frozenset[str]:
        seen = await super().visible(document, tools)
        if "large" in self._bundle.modules:
            await self.swap(build({"no_pay": NO_PAY}, {}))
        return seen


class Waiting:
    """Relations that allow everything, after something has happened."""

    external = False

    def __init__(self) -> None:
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return frozenset(tools)

    def health(self) -> Health:
        return Health(engine="waiting")


def believe(*_given: object) -> bool:
    """The guard, taken out."""
    return True


async def refused(house: Runtime, amount: int) -> type[CallRefused] | None:
    try:
        await house.call("pay", {"amount": amount}, caller=ME)
    except CallRefused as error:
        return type(error)
    return None


@pytest.mark.req("G3", "G8")
async def test_a_policy_that_is_swapped_meanwhile_is_asked_too() -> None:
    policy = Shifting(build({"large": LARGE}, {}))
    async with in_memory(pay, engines=Engines(policy)) as house:
        assert await refused(house, 5_000) is ToolNotFound, "as the new one says"
    assert paid == []


@pytest.mark.req("G3", "G8")
@pytest.mark.parametrize(
    ("text", "says"), [(LARGE, PermissionDenied), (NO_PAY, ToolNotFound)], ids=["one", "other"]
)
async def test_each_policy_alone_refuses_it(text: str, says: type[CallRefused]) -> None:
    async with in_memory(pay, engines=Engines(Rego(build({"alone": text}, {})))) as house:
        assert await refused(house, 5_000) is says


@pytest.mark.req("G3", "G8")
async def test_without_the_second_look_neither_policy_would_have_been_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(Gate, "_holds", believe)
    policy = Shifting(build({"large": LARGE}, {}))
    async with in_memory(pay, engines=Engines(policy)) as house:
        assert await refused(house, 5_000) is None
    assert paid == [5_000]


@pytest.mark.req("G1", "G8")
@pytest.mark.parametrize("how", ["guarded", "unguarded"])
async def test_a_flag_that_is_set_while_relations_are_asked_counts(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = how == "guarded"
    if not guarded:
        monkeypatch.setattr(Gate, "_holds", believe)
    relations = Waiting()
    async with in_memory(pay, engines=Engines(relations=relations)) as house:
        assert await refused(house, 1) is None
        await house.tenancy.set_tool("pay", enabled=True)
        relations.meanwhile = lambda: house.tenancy.set_tool("pay", enabled=False)
        assert await refused(house, 2) is (ToolNotFound if guarded else None)
    assert paid == ([1] if guarded else [1, 2])


@pytest.mark.req("G6")
async def test_hidden_looks_missing_also_while_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_memory(pay) as house:
        await house.tenancy.set_tool("pay", enabled=False)

        async def away(_tenancy: Tenancy) -> None:
            raise StoreUnavailable("away")

        monkeypatch.setattr(Tenancy, "freshen", away)
        assert await refused(house, 1) is ToolNotFound
        with pytest.raises(ToolNotFound):
            await house.call("missing", caller=ME)
        monkeypatch.undo()
        await house.tenancy.set_tool("pay", enabled=True)
        monkeypatch.setattr(Tenancy, "freshen", away)
        with pytest.raises(StoreUnavailable):
            await house.call("pay", {"amount": 1}, caller=ME)
