"""What is scheduled runs when it is due: once, as who asked, with what they may do then."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tests.blank import put_blank
from tests.gate.test_attacks import Watched
from tests.house import STORE, states
from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate, clock, tool
from toolgate.settings.settings import Settings
from toolgate.shelf import Place
from toolgate.tenancy.keys import Role
from toolgate.tools.agent import diary, keeping, rounds
from toolgate.tools.agent.appointment import Appointment
from toolgate.tools.agent.diary import Diary, Noted
from toolgate.tools.agent.keeping import Outcome
from toolgate.tools.agent.running import ran
from toolgate.tools.means import Means
from toolgate.tools.provider import BuiltinProvider

pytestmark = pytest.mark.req("T3")
SOON = "now"
OTHER = Caller(tenant="acme", agent="boss")
STRANGER = Caller(tenant="globex", agent="clerk")
_SECONDS = 20.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_FIRST", 0.05)
    monkeypatch.setattr(rounds, "_LOOK", 0.1)


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    async with opened(tmp_path) as found:
        yield found


def _call(tool: str, args: dict[str, Any]) -> str:
    return orjson.dumps({"tool": tool, "args": args}).decode()


def _means(gate: Toolgate) -> Means:
    provider = gate._executor._providers["builtin"]  # pyright: ignore[reportPrivateUsage]
    assert isinstance(provider, BuiltinProvider)
    return provider.means


def _diary(gate: Toolgate) -> Diary:
    return Diary(_means(gate).shelf, "acme")


async def _noted(gate: Toolgate, name: str) -> Noted:
    found = await _diary(gate).find(name)
    assert found is not None
    return found


async def _due(gate: Toolgate, name: str, at_ns: int) -> None:
    """Let it be due since then."""
    one, revision = await _noted(gate, name)
    late = msgspec.structs.replace(one, next_ns=at_ns, held_ns=0)
    assert await _diary(gate).change(Noted(late, revision))
    _means(gate).scheduled.set()


async def _until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """What it gives once it is something; the bound only ends a test that has failed."""
    async with asyncio.timeout(_SECONDS):
        while True:
            if found := await holds():
                return found
            await asyncio.sleep(0.02)


async def _notices(gate: Toolgate, caller: Caller = ME, *, count: int = 1) -> list[str]:
    """Scheduled notices, once so many are there."""

    async def texts() -> list[str] | None:
        found = await told(gate, "read_inbox", caller, kind="scheduled", limit=100)
        texts = [one["text"] for one in found["notices"]]
        return texts if len(texts) >= count else None

    return await _until(texts)


async def test_a_text_is_told_to_the_agent_and_gone(gate: Toolgate) -> None:
    await told(gate, "scheduler", task="Call Anna.", schedule=SOON)
    assert await _notices(gate) == ["Call Anna."]

    async def is_gone() -> bool:
        return not (await told(gate, "scheduler_list"))["count"]

    await _until(is_gone)


async def test_a_call_runs_through_the_gate_as_whoever_asked(gate: Toolgate) -> None:
    args = {"message": "It is time."}
    await told(gate, "scheduler", task=_call("notify_user", args), schedule=SOON)
    (text,) = await _notices(gate)
    assert "success" in text
    found = await told(gate, "read_inbox", kind="notification")
    assert [one["text"] for one in found["notices"]] == ["It is time."]
    calls = [entry for entry in await gate.journal.entries("acme") if entry.tool == "notify_user"]
    assert [entry.agent for entry in calls] == [ME.agent]
    assert calls[0].turn_group.startswith("scheduled:task_")


async def test_it_survives_a_restart_and_what_was_missed_runs_once(tmp_path: Path) -> None:
    off = {"scheduler": False}
    async with opened(tmp_path, agent=off) as gate:
        task = _call("notify_user", {"message": "Missed."})
        made = await told(gate, "scheduler", task=task, schedule="every 1 minute")
        await _due(gate, made["id"], clock.unix_ns() - 3 * 3_600 * 10**9)
    async with opened(tmp_path) as gate:
        await _notices(gate)

        async def ran_once() -> Any:
            (task,) = (await told(gate, "scheduler_list"))["tasks"]
            return task if task["runs"] else None

        task = await _until(ran_once)
        assert task["runs"] == 1
        assert task["last_outcome"].startswith("success")
        assert (await _noted(gate, made["id"])).appointment.next_ns > clock.unix_ns()
        found = await told(gate, "read_inbox", kind="notification")
        assert [one["text"] for one in found["notices"]] == ["Missed."]


async def test_what_was_taken_away_meanwhile_is_refused_and_told(tmp_path: Path) -> None:
    off = {"scheduler": False}
    async with opened(tmp_path, agent=off) as gate:
        task = _call("notify_user", {"message": "Not any more."})
        await told(gate, "scheduler", task=task, schedule=SOON)
        await told(gate, "scheduler", OTHER, task=task, schedule=SOON)
        await gate.tenancy.activate("acme", ME.agent, "notify_user", enabled=False)
    async with opened(tmp_path) as gate:
        (text,) = await _notices(gate)
        assert "refused: tool_not_found" in text
        # Whoever still may has it run.
        (text,) = await _notices(gate, OTHER)
        assert "success" in text
        assert ("notify_user", "succeeded", "") in await states(gate)
        assert (await told(gate, "read_inbox", kind="notification"))["count"] == 0


async def test_who_may_not_schedule_any_more_has_nothing_run(tmp_path: Path) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        await told(gate, "scheduler", task="Call Anna.", schedule=SOON)
        await gate.tenancy.activate("acme", ME.agent, "scheduler", enabled=False)
    async with opened(tmp_path) as gate:
        (text,) = await _notices(gate)
        assert "refused" in text


async def test_of_two_nodes_one_runs_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate, opened(tmp_path) as twin:
        for number in range(4):
            task = _call("notify_user", {"message": f"number {number}"})
            await told(gate if number % 2 else twin, "scheduler", task=task, schedule=SOON)
        await _notices(gate, count=4)
        found = await told(gate, "read_inbox", kind="notification")
        assert sorted(one["text"] for one in found["notices"]) == [f"number {n}" for n in range(4)]
        calls = [one for one in await states(gate) if one[0] == "notify_user"]
        assert len(calls) == 4


async def test_what_a_lost_node_had_begun_happens_once(gate: Toolgate) -> None:
    task = _call("notify_user", {"message": "Only once."})
    made = await told(gate, "scheduler", task=task, schedule="in 1 hour")
    noted = await _noted(gate, made["id"])
    # Twice, as if the first node had not come to write its end down.
    for _ in range(2):
        outcome = await ran(_means(gate), noted.appointment)
        assert outcome.status == "success"
    assert (await told(gate, "read_inbox", kind="notification"))["count"] == 1


async def test_scheduling_is_taken_back(gate: Toolgate) -> None:
    args = {"task": "Call Anna.", "schedule": "in 1 hour"}
    output = await gate.call("scheduler", args, caller=ME)
    await gate.undo(caller=ME, call_id=output.call_id)
    assert (await told(gate, "scheduler_list"))["count"] == 0


@pytest.mark.parametrize("other", [OTHER, STRANGER], ids=["another agent", "another tenant"])
async def test_nobody_else_sees_or_cancels_it(gate: Toolgate, other: Caller) -> None:
    made = await told(gate, "scheduler", task="Call Anna.", schedule="in 1 hour")
    assert (await told(gate, "scheduler_list", other))["count"] == 0
    assert not (await told(gate, "scheduler_cancel", other, id=made["id"]))["cancelled"]
    assert (await told(gate, "scheduler_cancel", id=made["id"]))["cancelled"]


async def test_without_the_guard_another_tenant_would(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_tenant: str, kind: str) -> Place:
        return Place("acme", kind)

    monkeypatch.setattr(diary, "Place", everywhere)
    await told(gate, "scheduler", task="Call Anna.", schedule="in 1 hour")
    assert (await told(gate, "scheduler_list", STRANGER))["count"] == 1


async def test_there_is_an_end_to_what_is_scheduled(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diary, "MOST_OF_ONE", 1)
    await told(gate, "scheduler", task="Call Anna.", schedule="in 1 hour")
    output = await gate.call("scheduler", {"task": "x", "schedule": "in 1 hour"}, caller=ME)
    assert output.error is not None
    assert "scheduler_list" in output.error.message


async def test_a_task_ends_after_it_was_refused_again_and_again(gate: Toolgate) -> None:
    made = await told(gate, "scheduler", task=_call("echo", {"text": "x"}), schedule="every day")
    await gate.tenancy.set_tool("echo", False)  # noqa: FBT003

    async def is_let_go() -> bool:
        found = await _diary(gate).find(made["id"])
        return found is None or not found.appointment.held_ns

    for number in range(1, 6):
        await _due(gate, made["id"], clock.unix_ns())
        await _notices(gate, count=number)
        await _until(is_let_go)
    assert await _diary(gate).find(made["id"]) is None
    assert "no longer scheduled" in (await _notices(gate, count=5))[-1]


async def test_who_came_by_a_token_schedules_nothing_beyond_its_end(gate: Toolgate) -> None:
    until_ns = clock.unix_ns() + 60 * 10**9
    guest = Caller(tenant="acme", agent="guest", until_ns=until_ns)
    output = await gate.call("scheduler", {"task": "x", "schedule": "in 1 hour"}, caller=guest)
    assert output.error is not None
    assert "ends before" in output.error.message


async def test_what_a_person_has_to_agree_to_runs_once_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "WAIT", 10**8)
    paid: list[str] = []

    @tool(effect="irreversible", requires_approval=True)
    async def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return to

    put_blank(tmp_path / STORE)
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(pay)
        await told(gate, "scheduler", task=_call("pay", {"to": "bob"}), schedule=SOON)
        (text,) = await _notices(gate)
        assert "pending_approval" in text
        (asked,) = await gate.approvals.list("acme")
        assert paid == []
        await gate.approvals.approve(asked.id, by="boss")
        texts = await _notices(gate, count=2)
        assert "success" in texts[-1] or "success" in texts[0]
        assert paid == ["bob"]


async def test_what_came_by_a_key_ends_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        await gate.tenancy.set_agent("acme", ME.agent)
        made = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent=ME.agent)
        keyed = Caller(tenant="acme", agent=ME.agent, key=made.key.id)
        task = _call("notify_user", {"message": "Never."})
        await told(gate, "scheduler", keyed, task=task, schedule=SOON)
        await gate.tenancy.revoke_key(made.key.id)
    async with opened(tmp_path) as gate:
        (text,) = await _notices(gate)
        assert "refused" in text
        assert (await told(gate, "read_inbox", kind="notification"))["count"] == 0


@pytest.mark.req("G1", "X1")
async def test_what_is_scheduled_passes_the_gate_exactly_once(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = _call("echo", {"text": "hi"})
    made = await told(gate, "scheduler", task=task, schedule="in 1 hour")
    noted = await _noted(gate, made["id"])
    watched = Watched(monkeypatch)
    assert (await ran(_means(gate), noted.appointment)).status == "success"
    watched.once()


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
            task = _call("linger", {"name": str(number)})
            await told(gate, "scheduler", task=task, schedule=SOON)

        async def all_places() -> bool:
            return len(begun) >= 4

        await _until(all_places)
        monkeypatch.setattr(rounds, "_LOOK", 60.0)
        monkeypatch.setattr(rounds.Rounds, "_look", counted)
        await told(gate, "scheduler", STRANGER, task="It is time.", schedule=SOON)
        assert await _notices(gate, STRANGER) == ["It is time."]
        assert len(begun) == 4
        # Who waits for a place is told when there is one; the store is not asked all the while.
        await asyncio.sleep(0.3)
        assert looks < 10
    finally:
        go_on.set()

    async def are_done() -> bool:
        return len(begun) == 12

    await _until(are_done)


@pytest.mark.parametrize("rests", [True, False])
async def test_what_is_due_is_begun_unless_the_house_was_told_to_rest(
    tmp_path: Path, *, rests: bool
) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        made = await told(gate, "scheduler", task="Call Anna.", schedule="every 1 hour")
        await _due(gate, made["id"], clock.unix_ns() - 10**9)
        own = rounds.Rounds(_means(gate))
        gate.errands.append(own.rest)
        if rests:
            gate.rest()
        await own._look()  # pyright: ignore[reportPrivateUsage]
        await own.close()
        one, _ = await _noted(gate, made["id"])
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
    made = await told(gate, "scheduler", task=_call("linger", {}), schedule=SOON)

    async def held() -> int:
        return (await _noted(gate, made["id"])).appointment.held_ns

    first = await _until(held)

    async def is_held_again() -> bool:
        return await held() > first + 2 * keeping.HOLD

    try:
        await _until(is_held_again)
    finally:
        slow.go_on.set()
    (text,) = await _notices(gate)
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
        await told(gate, "scheduler", task=_call("linger", {}), schedule=SOON)

        async def was_met() -> bool:
            return bool(found)

        try:
            await _until(was_met)
            assert found[0].text.startswith("in_progress")
        finally:
            slow.go_on.set()
        (text,) = await _notices(gate)
        assert "the real result" in text
        assert slow.begun == 1
