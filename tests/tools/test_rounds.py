"""The rounds that begin what is due: places are shared, what runs is held, and rest is rest."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.tools.asking import opened, told
from tests.tools.scheduling import (
    SOON,
    STRANGER,
    a_call,
    due,
    means_of,
    noted,
    notices,
    until,
)
from toolgate import Toolgate, clock, tool
from toolgate.tools.agent import keeping, rounds
from toolgate.tools.agent.appointment import Appointment
from toolgate.tools.agent.diary import Diary
from toolgate.tools.agent.keeping import Outcome
from toolgate.tools.agent.running import ran
from toolgate.tools.means import Means

pytestmark = pytest.mark.req("T3")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_FIRST", 0.05)
    monkeypatch.setattr(rounds, "_LOOK", 0.1)


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    async with opened(tmp_path) as found:
        yield found


async def test_a_tenant_whose_tasks_take_long_keeps_no_other_waiting(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    begun: list[str] = []

    @tool(effect="idempotent")
    async def linger(name: str) -> str:
        """Take as long as it likes."""
        begun.append(name)
        await go_on.wait()
        return name

    gate.add(linger)
    looks = 0
    look = rounds.Rounds._look  # pyright: ignore[reportPrivateUsage]

    async def counted(self: rounds.Rounds) -> int | None:
        nonlocal looks
        looks += 1
        return await look(self)

    try:
        for number in range(12):
            task = a_call("linger", {"name": str(number)})
            await told(gate, "scheduler", task=task, schedule=SOON)

        async def all_places() -> bool:
            return len(begun) >= 4

        await until(all_places)
        monkeypatch.setattr(rounds, "_LOOK", 60.0)
        monkeypatch.setattr(rounds.Rounds, "_look", counted)
        await told(gate, "scheduler", STRANGER, task="It is time.", schedule=SOON)
        assert await notices(gate, STRANGER) == ["It is time."]
        assert len(begun) == 4
        # Who waits for a place is told when there is one; the store is not asked all the while.
        await asyncio.sleep(0.3)
        assert looks < 10
    finally:
        go_on.set()

    async def are_done() -> bool:
        return len(begun) == 12

    await until(are_done)


@pytest.mark.parametrize("rests", [True, False])
async def test_what_is_due_is_begun_unless_the_house_was_told_to_rest(
    tmp_path: Path, *, rests: bool
) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        made = await told(gate, "scheduler", task="Call Anna.", schedule="every 1 hour")
        await due(gate, made["id"], clock.unix_ns() - 10**9)
        own = rounds.Rounds(means_of(gate))
        gate.errands.append(own.rest)
        if rests:
            gate.rest()
        await own._look()  # pyright: ignore[reportPrivateUsage]
        await own.close()
        one, _ = await noted(gate, made["id"])
        assert one.runs == (0 if rests else 1)
        assert bool(one.held_ns) is False


class Slow:
    """A tool that takes until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()

    def added(self, gate: Toolgate) -> None:
        @tool(effect="irreversible")
        async def linger() -> str:
            """Take as long as it likes."""
            self.begun += 1
            await self.go_on.wait()
            return "the real result"

        gate.add(linger)


async def test_what_takes_long_is_held_all_the_while(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "HOLD", 3 * 10**8)
    slow = Slow()
    slow.added(gate)
    made = await told(gate, "scheduler", task=a_call("linger", {}), schedule=SOON)

    async def held() -> int:
        return (await noted(gate, made["id"])).appointment.held_ns

    first = await until(held)

    async def is_held_again() -> bool:
        return await held() > first + 2 * keeping.HOLD

    try:
        await until(is_held_again)
    finally:
        slow.go_on.set()
    (text,) = await notices(gate)
    assert "the real result" in text


async def test_what_another_node_is_at_is_told_by_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stands_still(_diary: Diary, _name: str) -> None:
        """As a node whose store does not answer."""

    found: list[Outcome] = []

    async def noticed(means: Means, one: Appointment) -> Outcome:
        found.append(await ran(means, one))
        return found[-1]

    monkeypatch.setattr(rounds, "_hold", stands_still)
    monkeypatch.setattr(rounds, "ran", noticed)
    monkeypatch.setattr(keeping, "HOLD", 10**8)
    monkeypatch.setattr(keeping, "_MOST_TRIES", 0)
    slow = Slow()
    async with opened(tmp_path) as gate, opened(tmp_path) as twin:
        for node in (gate, twin):
            slow.added(node)
        await told(gate, "scheduler", task=a_call("linger", {}), schedule=SOON)

        async def was_met() -> bool:
            return bool(found)

        try:
            await until(was_met)
            assert found[0].text.startswith("in_progress")
        finally:
            slow.go_on.set()
        (text,) = await notices(gate)
        assert "the real result" in text
        assert slow.begun == 1
