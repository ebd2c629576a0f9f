"""A call that waits for a person goes on at their word, and waits no longer than it has to."""

import asyncio
from pathlib import Path

import pytest

from tests.house import until
from tests.people.asked import ANN, TURN, id_of, pay, ran
from toolgate import Caller, Toolgate, clock, tool
from toolgate.call import Output
from toolgate.errors import ApprovalDenied, ToolNotFound
from toolgate.executor.people import approval as asking
from toolgate.executor.people import presence
from toolgate.ledger.approval import Approval, Requested, Some, Standing
from toolgate.ledger.entry import Entry
from toolgate.settings.settings import Settings
from toolgate.testing.approvals import MemoryApprovals
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("S6")


async def test_a_call_that_waits_runs_when_somebody_agrees(gate: Toolgate) -> None:
    events = gate.events("acme")
    waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN, wait_s=30))
    asked = await anext(events)
    assert asked.kind == "approval.requested"
    await gate.approvals.approve(asked.payload["approval_id"], by="boss")
    assert (await waiting).data == "paid bob"


async def test_a_call_that_waits_sees_what_another_process_decides(
    gate: Toolgate, tmp_path: Path
) -> None:
    events = gate.events("acme")
    waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN, wait_s=30))
    asked = await anext(events)
    async with Toolgate.open(Settings(root=tmp_path)) as other:
        await other.approvals.deny(asked.payload["approval_id"], by="boss", reason="no")
    with pytest.raises(ApprovalDenied):
        await waiting


async def test_a_wait_that_is_over_answers_that_it_is_pending(gate: Toolgate) -> None:
    output = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN, wait_s=0.05)
    assert output.status == "pending_approval"


async def test_to_wait_for_a_person_is_not_the_tools_time(gate: Toolgate) -> None:
    @tool(effect="irreversible", requires_approval=True, timeout=0.3)
    async def hangs() -> None:
        """Hang."""
        ran.append("hangs")
        await asyncio.Event().wait()

    gate.add(hangs)
    output = await gate.call("hangs", caller=ANN, wait_s=0.6)
    assert output.status == "pending_approval", "its own time would have been over"
    events = gate.events("acme")
    waiting = asyncio.create_task(gate.call("hangs", caller=ANN, wait_s=50))
    await gate.approvals.approve(id_of(output), by="boss")
    assert (await waiting).status == "unknown"
    assert ran == ["hangs"]
    assert (await anext(events)).kind == "approval.approved"


async def test_what_was_revoked_while_it_waited_does_not_run(gate: Toolgate) -> None:
    events = gate.events("acme")
    waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN, wait_s=30))
    asked = await anext(events)
    await gate.tenancy.set_tenant_tool("acme", "pay", enabled=False)
    await gate.approvals.approve(asked.payload["approval_id"], by="boss")
    with pytest.raises(ToolNotFound):
        await waiting
    assert ran == []


async def test_a_call_whose_caller_has_left_does_not_wait(gate: Toolgate) -> None:
    left = asyncio.Event()
    with presence.until(left):
        waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, wait_s=50))
    await asyncio.sleep(0)
    left.set()
    began = clock.monotonic_ns()
    id_of(await waiting)
    assert clock.monotonic_ns() - began < 20 * 10**9


class Counted(MemoryApprovals):
    """Counts who asks, which writes, and who only looks."""

    asked = looked = 0

    async def request(self, wanted: Approval, intent: Entry, ttl_ns: int) -> Requested:
        self.asked += 1
        return await super().request(wanted, intent, ttl_ns)

    async def stands(self, tenant: str, id_: str) -> Standing | None:
        self.looked += 1
        return await super().stands(tenant, id_)


async def test_whoever_waits_looks_and_does_not_write() -> None:
    journal = MemoryJournal()
    kept = Counted(journal)
    async with in_memory(pay, journal=journal, approvals=kept) as gate:
        waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, wait_s=30))
        await until(lambda: kept.looked >= 3)
        assert kept.asked == 1
        [found] = await kept.search(Some())
        # By another process: nobody is woken here.
        await kept.decide(found, approved=True, who="boss", why="")
        assert (await waiting).ok


async def test_so_many_wait_and_the_rest_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_MOST_OF_TENANT", 3)
    monkeypatch.setattr(asking, "_MOST_WAITING", 5)
    journal = MemoryJournal()
    kept = Counted(journal)
    async with in_memory(pay, journal=journal, approvals=kept) as gate:

        def calls(tenant: str, count: int) -> list[asyncio.Task[Output]]:
            caller = Caller(tenant=tenant, agent="billing")
            return [
                asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=caller, wait_s=30))
                for _ in range(count)
            ]

        tasks = calls("acme", 6)
        await until(lambda: sum(task.done() for task in tasks) == 3)
        for task in tasks:
            if task.done():
                id_of(task.result())
        # The others have theirs, as far as the process has any.
        others = calls("umbrella", 3)
        await until(lambda: sum(task.done() for task in others) == 1)
        for found in await kept.search(Some()):
            await gate.approvals.approve(found.id, by="boss")
        done = await asyncio.gather(*tasks, *others)
        assert sum(output.ok for output in done) == 2, "one for each tenant that was asked for"
        # Who has left has made room.
        [more] = calls("acme", 1)
        await until(lambda: kept.looked > 0 and not more.done())
        more.cancel()
