"""What is scheduled runs when it is due: once, as who asked, with what they may do then."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.blank import put_blank
from tests.gate.test_attacks import Watched
from tests.house import STORE, states
from tests.tools.asking import ME, opened, told
from tests.tools.scheduling import (
    SOON,
    STRANGER,
    a_call,
    diary_of,
    due,
    means_of,
    noted,
    notices,
    until,
)
from toolgate import Caller, Toolgate, clock, tool
from toolgate.settings.settings import Settings
from toolgate.shelf import Place
from toolgate.tenancy.keys import Role
from toolgate.tools.agent import diary, keeping, rounds
from toolgate.tools.agent.running import ran

pytestmark = pytest.mark.req("T3")
OTHER = Caller(tenant="acme", agent="boss")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_FIRST", 0.05)
    monkeypatch.setattr(rounds, "_LOOK", 0.1)


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    async with opened(tmp_path) as found:
        yield found


async def test_a_text_is_told_to_the_agent_and_gone(gate: Toolgate) -> None:
    await told(gate, "scheduler", task="Call Anna.", schedule=SOON)
    assert await notices(gate) == ["Call Anna."]

    async def is_gone() -> bool:
        return not (await told(gate, "scheduler_list"))["count"]

    await until(is_gone)


async def test_a_call_runs_through_the_gate_as_whoever_asked(gate: Toolgate) -> None:
    args = {"message": "It is time."}
    await told(gate, "scheduler", task=a_call("notify_user", args), schedule=SOON)
    (text,) = await notices(gate)
    assert "success" in text
    found = await told(gate, "read_inbox", kind="notification")
    assert [one["text"] for one in found["notices"]] == ["It is time."]
    calls = [entry for entry in await gate.journal.entries("acme") if entry.tool == "notify_user"]
    assert [entry.agent for entry in calls] == [ME.agent]
    assert calls[0].turn_group.startswith("scheduled:task_")


async def test_it_survives_a_restart_and_what_was_missed_runs_once(tmp_path: Path) -> None:
    off = {"scheduler": False}
    async with opened(tmp_path, agent=off) as gate:
        task = a_call("notify_user", {"message": "Missed."})
        made = await told(gate, "scheduler", task=task, schedule="every 1 minute")
        await due(gate, made["id"], clock.unix_ns() - 3 * 3_600 * 10**9)
    async with opened(tmp_path) as gate:
        await notices(gate)

        async def ran_once() -> Any:
            (task,) = (await told(gate, "scheduler_list"))["tasks"]
            return task if task["runs"] else None

        task = await until(ran_once)
        assert task["runs"] == 1
        assert task["last_outcome"].startswith("success")
        assert (await noted(gate, made["id"])).appointment.next_ns > clock.unix_ns()
        found = await told(gate, "read_inbox", kind="notification")
        assert [one["text"] for one in found["notices"]] == ["Missed."]


async def test_what_was_taken_away_meanwhile_is_refused_and_told(tmp_path: Path) -> None:
    off = {"scheduler": False}
    async with opened(tmp_path, agent=off) as gate:
        task = a_call("notify_user", {"message": "Not any more."})
        await told(gate, "scheduler", task=task, schedule=SOON)
        await told(gate, "scheduler", OTHER, task=task, schedule=SOON)
        await gate.tenancy.activate("acme", ME.agent, "notify_user", enabled=False)
    async with opened(tmp_path) as gate:
        (text,) = await notices(gate)
        assert "refused: tool_not_found" in text
        # Whoever still may has it run.
        (text,) = await notices(gate, OTHER)
        assert "success" in text
        assert ("notify_user", "succeeded", "") in await states(gate)
        assert (await told(gate, "read_inbox", kind="notification"))["count"] == 0


async def test_who_may_not_schedule_any_more_has_nothing_run(tmp_path: Path) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        await told(gate, "scheduler", task="Call Anna.", schedule=SOON)
        await gate.tenancy.activate("acme", ME.agent, "scheduler", enabled=False)
    async with opened(tmp_path) as gate:
        (text,) = await notices(gate)
        assert "refused" in text


async def test_of_two_nodes_one_runs_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate, opened(tmp_path) as twin:
        for number in range(4):
            task = a_call("notify_user", {"message": f"number {number}"})
            await told(gate if number % 2 else twin, "scheduler", task=task, schedule=SOON)
        await notices(gate, count=4)
        found = await told(gate, "read_inbox", kind="notification")
        assert sorted(one["text"] for one in found["notices"]) == [f"number {n}" for n in range(4)]
        calls = [one for one in await states(gate) if one[0] == "notify_user"]
        assert len(calls) == 4


async def test_what_a_lost_node_had_begun_happens_once(gate: Toolgate) -> None:
    task = a_call("notify_user", {"message": "Only once."})
    made = await told(gate, "scheduler", task=task, schedule="in 1 hour")
    found = await noted(gate, made["id"])
    # Twice, as if the first node had not come to write its end down.
    for _ in range(2):
        outcome = await ran(means_of(gate), found.appointment)
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
    made = await told(gate, "scheduler", task=a_call("echo", {"text": "x"}), schedule="every day")
    await gate.tenancy.set_tool("echo", False)  # noqa: FBT003

    async def is_let_go() -> bool:
        found = await diary_of(gate).find(made["id"])
        return found is None or not found.appointment.held_ns

    for number in range(1, 6):
        await due(gate, made["id"], clock.unix_ns())
        await notices(gate, count=number)
        await until(is_let_go)
    assert await diary_of(gate).find(made["id"]) is None
    assert "no longer scheduled" in (await notices(gate, count=5))[-1]


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
        await told(gate, "scheduler", task=a_call("pay", {"to": "bob"}), schedule=SOON)
        (text,) = await notices(gate)
        assert "pending_approval" in text
        (asked,) = await gate.approvals.list("acme")
        assert paid == []
        await gate.approvals.approve(asked.id, by="boss")
        texts = await notices(gate, count=2)
        assert "success" in texts[-1] or "success" in texts[0]
        assert paid == ["bob"]


async def test_what_came_by_a_key_ends_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path, agent={"scheduler": False}) as gate:
        await gate.tenancy.set_agent("acme", ME.agent)
        made = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent=ME.agent)
        keyed = Caller(tenant="acme", agent=ME.agent, key=made.key.id)
        task = a_call("notify_user", {"message": "Never."})
        await told(gate, "scheduler", keyed, task=task, schedule=SOON)
        await gate.tenancy.revoke_key(made.key.id)
    async with opened(tmp_path) as gate:
        (text,) = await notices(gate)
        assert "refused" in text
        assert (await told(gate, "read_inbox", kind="notification"))["count"] == 0


@pytest.mark.req("G1", "X1")
async def test_what_is_scheduled_passes_the_gate_exactly_once(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = a_call("echo", {"text": "hi"})
    made = await told(gate, "scheduler", task=task, schedule="in 1 hour")
    found = await noted(gate, made["id"])
    watched = Watched(monkeypatch)
    assert (await ran(means_of(gate), found.appointment)).status == "success"
    watched.once()
