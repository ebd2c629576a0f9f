"""A person is asked: what they agree to runs, that very call, once and in time."""

import asyncio
from typing import Any

import pytest

from tests.people.asked import ANN, BOT, TURN, id_of, pay, pending, ran
from toolgate import Caller, Toolgate, Turn, clock, tool
from toolgate.call import Output
from toolgate.errors import ApprovalDenied, InvalidRequest, ToolNotFound
from toolgate.executor.people import approval as asking
from toolgate.executor.recording import claim
from toolgate.ledger.approval import Approval, Standing
from toolgate.ledger.state import State
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("S6")


@tool(effect="pure", requires_approval=True)
async def read() -> int:
    """Read what not everybody may."""
    ran.append("read")
    return len(ran)


async def test_a_pending_call_says_what_it_waits_for_and_where_to_answer(gate: Toolgate) -> None:
    output = await gate.call("send", {"text": "hi"}, caller=ANN, turn=TURN)
    assert output.error is not None
    assert output.error.code == "approval_pending"
    details = output.error.details
    id_ = id_of(output)
    assert details["kind"] == "confirmation"
    assert details["prompt"] == "Send it?"
    assert details["where"] == {
        "command": f"toolgate approvals approve {id_}",
        "http": f"POST /v1/approvals/{id_}/approve",
    }
    assert details["expires_at"] > "2026"
    waiting = await gate.journal.find("acme", output.call_id)
    assert waiting is not None
    assert waiting.state is State.WAITING


async def test_what_was_approved_runs_once_under_the_id_that_it_waited_by(gate: Toolgate) -> None:
    first = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    await gate.approvals.approve(id_of(first), by="boss", reason="fine")
    output = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    assert (output.data, output.call_id) == ("paid bob", first.call_id)
    again = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    assert (again.data, again.cached, len(ran)) == ("paid bob", True, 1)
    # Another turn is another piece of business, which nobody has agreed to.
    other = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=Turn(group="t2"))
    assert id_of(other) != id_of(first)


async def test_one_yes_is_for_one_look_too(gate: Toolgate) -> None:
    gate.add(read)
    first = await gate.call("read", caller=ANN, turn=TURN)
    assert ran == []
    await gate.approvals.approve(id_of(first), by="boss", reason="fine")
    looks = [await gate.call("read", caller=ANN, turn=TURN) for _ in range(3)]
    assert [(one.data, one.cached) for one in looks] == [(1, False), (1, True), (1, True)]
    assert len(ran) == 1
    # Outside of a turn there is nothing to find it by: somebody is asked again.
    alone = await gate.call("read", caller=ANN)
    await gate.approvals.approve(id_of(alone), by="boss", reason="fine")
    assert (await gate.call("read", caller=ANN)).data == 2
    assert id_of(await gate.call("read", caller=ANN)) != id_of(alone)


async def test_who_when_and_why_are_on_record(gate: Toolgate) -> None:
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss", reason="invoice 7")
    found = await gate.approvals.find(id_, by="boss")
    assert found is not None
    assert (found.decided_by, found.reason, found.decided_ns > 0) == ("boss", "invoice 7", True)
    records = {record.change: record for record in await gate.tenancy.audit(tenant="acme")}
    assert records["approval.requested"].who == "billing"
    approved = records["approval.approved"]
    assert (approved.who, approved.why) == ("boss", "invoice 7")
    assert approved.details["approval"] == id_


async def test_a_call_that_fails_under_its_approval_bears_that_id(gate: Toolgate) -> None:
    @tool(effect="irreversible", requires_approval=True)
    async def breaks() -> None:
        """Break."""
        raise ValueError

    gate.add(breaks)
    first = await gate.call("breaks", caller=ANN)
    await gate.approvals.approve(id_of(first), by="boss")
    failed = await gate.call("breaks", caller=ANN)
    assert (failed.status, failed.call_id) == ("unknown", first.call_id)
    entry = await gate.journal.find("acme", first.call_id)
    assert entry is not None
    assert entry.state is State.UNKNOWN


# One byte, one name, one person, one version: each makes it another call.
OTHER: dict[str, dict[str, Any]] = {
    "an argument": {"args": {"to": "bob", "amount": 1.5}},
    "one letter": {"args": {"to": "boB"}},
    "the user": {"caller": Caller(tenant="acme", agent="billing", user="eve")},
    "the agent": {"caller": Caller(tenant="acme", agent="other", user="ann")},
    "the tenant": {"caller": Caller(tenant="umbrella", agent="billing", user="ann")},
    "who handed it on": {
        "caller": Caller(tenant="acme", agent="x", user="ann").delegate("billing")
    },
}


@pytest.mark.parametrize("what", OTHER)
async def test_an_approval_is_for_no_other_call(gate: Toolgate, what: str) -> None:
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss")
    given: dict[str, Any] = {"args": {"to": "bob"}, "caller": ANN} | OTHER[what]
    output = await gate.call("pay", given["args"], caller=given["caller"], turn=Turn(group="t9"))
    assert id_of(output) != id_
    assert ran == []
    # And it still is for its own: written in another order, and 1.0 for 1.
    same = await gate.call("pay", {"amount": 1.0, "to": "bob"}, caller=ANN, turn=TURN)
    assert id_of(same) != id_, "an argument that was left out is not the same as one that is there"
    assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).ok


async def test_without_its_two_guards_it_would_be(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_raw: bytes) -> bytes:
        return b""

    monkeypatch.setattr(asking, "canonical_args", nothing)
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss")
    # The record compares the arguments once more, so that without the hash nothing else runs.
    output = await gate.call("pay", {"to": "eve"}, caller=ANN, turn=Turn(group="t9"))
    assert (output.status, ran) == ("pending_approval", [])
    monkeypatch.setattr(claim, "canonical_args", nothing)
    await gate.approvals.approve(await pending(gate, "pay", BOT), by="boss")
    assert (await gate.call("pay", {"to": "eve"}, caller=BOT, turn=Turn(group="t9"))).ok
    assert ran == [("eve", 1)]


async def test_a_tool_that_was_redefined_is_asked_about_again(gate: Toolgate) -> None:
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss")

    @tool(name="pay", effect="irreversible", requires_approval=True)
    async def other(to: str, amount: float = 1) -> str:
        """Pay somebody, and somebody else too."""
        ran.append(("other", to, amount))
        return "paid twice"

    gate.catalog.put("python", [])
    gate.add(other)
    assert await pending(gate) != id_
    assert ran == []


async def test_a_changed_policy_is_asked_about_again(gate: Toolgate) -> None:
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss")
    rule = 'package toolgate\n\nbanned["never"] contains "nobody may" if true\n'
    await gate.tenancy.set_policy_module("mine", rule)
    assert await pending(gate) != id_
    await gate.tenancy.set_policy_module("mine", None)
    assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).ok


async def test_what_was_revoked_meanwhile_does_not_run(gate: Toolgate) -> None:
    await gate.approvals.approve(await pending(gate), by="boss")
    await gate.tenancy.set_tenant_tool("acme", "pay", enabled=False)
    with pytest.raises(ToolNotFound):
        await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    assert ran == []


async def test_many_calls_at_once_on_one_approval_run_once(gate: Toolgate) -> None:
    first = await gate.call("pay", {"to": "bob"}, caller=ANN)
    await gate.approvals.approve(id_of(first), by="boss")
    outputs = await asyncio.gather(
        *(gate.call("pay", {"to": "bob"}, caller=ANN) for _ in range(16)), return_exceptions=True
    )
    assert len(ran) == 1
    done = [one for one in outputs if isinstance(one, Output) and one.ok]
    assert len(done) == 1
    assert not [one for one in outputs if isinstance(one, Exception)]


async def test_attempts_of_one_turn_on_one_approval_share_its_answer(gate: Toolgate) -> None:
    first = await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    await gate.approvals.approve(id_of(first), by="boss")
    outputs = await asyncio.gather(
        *(gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN, wait_s=20) for _ in range(8))
    )
    assert {(one.data, one.call_id) for one in outputs} == {("paid bob", first.call_id)}
    assert [one.cached for one in outputs].count(False) == 1
    assert len(ran) == 1


async def test_an_attempt_that_is_given_up_does_not_end_the_one_that_runs(gate: Toolgate) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @tool(effect="irreversible", requires_approval=True)
    async def slow() -> str:
        """Take long."""
        begun.set()
        await go.wait()
        return "done"

    gate.add(slow)
    first = await gate.call("slow", caller=ANN, turn=TURN)
    await gate.approvals.approve(id_of(first), by="boss")
    running, twin = (
        asyncio.create_task(gate.call("slow", caller=ANN, turn=TURN, wait_s=20)) for _ in range(2)
    )
    await begun.wait()
    await asyncio.sleep(0)
    twin.cancel()
    go.set()
    outputs = await asyncio.gather(running, twin, return_exceptions=True)
    assert [one.data for one in outputs if isinstance(one, Output)] == ["done"]
    entry = await gate.journal.find("acme", first.call_id)
    assert entry is not None
    assert entry.state is State.SUCCEEDED


async def test_two_who_approve_in_the_same_moment_approve_once(gate: Toolgate) -> None:
    id_ = await pending(gate)
    words = await asyncio.gather(
        *(gate.approvals.approve(id_, by=f"boss{number}") for number in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(word, Approval) for word in words) == 1
    assert sum(isinstance(word, InvalidRequest) for word in words) == 7
    for _ in range(3):
        await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    assert len(ran) == 1


async def test_a_no_is_told_with_its_reason_and_nothing_runs(gate: Toolgate) -> None:
    id_ = await pending(gate)
    await gate.approvals.deny(id_, by="boss", reason="not this month")
    with pytest.raises(ApprovalDenied, match="not this month"):
        await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)
    with pytest.raises(InvalidRequest, match="denied by boss"):
        await gate.approvals.approve(id_, by="other")
    assert ran == []


async def test_an_approval_that_is_over_lets_nothing_run(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await pending(gate)
    await gate.approvals.approve(id_, by="boss")
    real = clock.unix_ns
    monkeypatch.setattr(clock, "unix_ns", lambda: real() + 3_601 * 10**9)
    assert await pending(gate) != id_
    found = await gate.approvals.find(id_, by="boss")
    assert found is not None
    assert found.state is Standing.EXPIRED
    assert ran == []


async def test_one_that_is_over_cannot_be_approved(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await pending(gate)
    real = clock.unix_ns
    monkeypatch.setattr(clock, "unix_ns", lambda: real() + 3_601 * 10**9)
    with pytest.raises(InvalidRequest, match="expired"):
        await gate.approvals.approve(id_, by="boss")


async def test_a_house_in_memory_asks_the_same_way() -> None:
    async with in_memory(pay) as gate:
        id_ = await pending(gate)
        await gate.approvals.approve(id_, by="boss")
        assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).ok
        assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).cached
        assert len(ran) == 1
