"""A person is asked: what they agree to runs, that very call, once and in time."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from toolgate import Caller, Toolgate, Turn, clock, tool
from toolgate.call import Output
from toolgate.errors import (
    ApprovalDenied,
    InvalidRequest,
    Overloaded,
    PermissionDenied,
    ToolNotFound,
)
from toolgate.executor.people import approval as asking
from toolgate.executor.people import presence
from toolgate.executor.people.desk import MOST_SHOWN, code_of, told
from toolgate.executor.recording import claim
from toolgate.ledger import approval as kept_rules
from toolgate.ledger.approval import Approval, Kind, Requested, Some, Standing
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.settings.execution import Approvals as ApprovalSettings
from toolgate.settings.settings import Settings
from toolgate.testing.approvals import MemoryApprovals
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("S6")
ANN = Caller(tenant="acme", agent="billing", user="ann")
BOT = Caller(tenant="acme", agent="billing")
TURN = Turn(group="t1")
PASSWORD = "hunter2hunter2"  # noqa: S105  of this test
ran: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(effect="irreversible", requires_approval=True)
async def pay(to: str, amount: float = 1) -> str:
    """Pay somebody."""
    ran.append((to, amount))
    return f"paid {to}"


@tool(effect="irreversible", requires_confirmation=True, confirmation_prompt="Send it?")
async def send(text: str) -> str:
    """Send a text."""
    ran.append(text)
    return "sent"


@tool(effect="pure")
async def look() -> str:
    """Look."""
    ran.append("look")
    return "seen"


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    async with Toolgate.open(Settings(root=tmp_path)) as opened:
        opened.add(pay, send, look)
        yield opened


def id_of(output: Output) -> str:
    assert output.status == "pending_approval", output
    assert output.error is not None
    return output.error.details["approval_id"]


async def pending(gate: Any, name: str = "pay", caller: Caller = ANN, **args: Any) -> str:
    given = args or ({"to": "bob"} if name == "pay" else {"text": "hi"})
    return id_of(await gate.call(name, given, caller=caller, turn=TURN))


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


async def test_no_message_and_no_second_call_counts_as_a_yes(gate: Toolgate) -> None:
    yes = Turn(group="t1", id="2", has_pending_messages=lambda: True, emit=lambda _event: "yes")
    id_ = await pending(gate, "send")
    for text in ("yes", "approved", id_, "I approve"):
        other = await gate.call("send", {"text": text}, caller=ANN, turn=yes)
        assert other.status == "pending_approval"
        assert id_of(await gate.call("send", {"text": "hi"}, caller=ANN, turn=yes)) == id_
    assert ran == []
    await gate.approvals.approve(id_, by=ANN)
    assert (await gate.call("send", {"text": "hi"}, caller=ANN, turn=TURN)).ok


WHO = {
    # An approval: an operator who is not the one that asked.
    ("pay", "an operator"): ("boss", True),
    ("pay", "the user, as an operator"): ("ann", False),
    ("pay", "the user at this machine"): ("cli:ann", False),
    ("pay", "the agent for its user"): (ANN, False),
    ("pay", "the agent alone"): (BOT, False),
    ("pay", "another user"): (Caller(tenant="acme", agent="billing", user="eve"), False),
    ("send", "an operator"): ("boss", True),
    # A confirmation: also the user that the agent acts for.
    ("send", "the user"): (ANN, True),
    ("send", "the user with another agent"): (
        Caller(tenant="acme", agent="front", user="ann"),
        True,
    ),
    ("send", "the agent alone"): (BOT, False),
    ("send", "another user"): (Caller(tenant="acme", agent="billing", user="eve"), False),
}


@pytest.mark.parametrize(("name", "who"), WHO)
@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_who_may_decide(gate: Toolgate, name: str, who: str, verb: str) -> None:
    by, may = WHO[name, who]
    id_ = await pending(gate, name)
    decide = getattr(gate.approvals, verb)
    if may:
        assert (await decide(id_, by=by)).state in {Standing.APPROVED, Standing.DENIED}
    else:
        with pytest.raises((PermissionDenied, InvalidRequest)):
            await decide(id_, by=by)
        found = await gate.approvals.find(id_, by="boss")
        assert found is not None
        assert found.state is Standing.WAITING


async def test_an_agent_without_a_user_cannot_confirm_its_own_call(gate: Toolgate) -> None:
    id_ = await pending(gate, "send", BOT)
    with pytest.raises(PermissionDenied):
        await gate.approvals.approve(id_, by=BOT)
    await gate.approvals.approve(id_, by="boss")


async def test_to_another_tenant_it_is_not_there(gate: Toolgate) -> None:
    id_ = await pending(gate)
    stranger = Caller(tenant="umbrella", agent="billing", user="ann")
    with pytest.raises(InvalidRequest) as there:
        await gate.approvals.approve(id_, by=stranger)
    with pytest.raises(InvalidRequest) as nowhere:
        await gate.approvals.approve("apr_none", by=stranger)
    assert str(there.value).replace(id_, "X") == str(nowhere.value).replace("apr_none", "X")
    assert await gate.approvals.find(id_, by=stranger) is None
    assert await gate.approvals.list(stranger) == []
    assert [one.id for one in await gate.approvals.list(ANN)] == [id_]
    assert [one.id for one in await gate.approvals.list("acme")] == [id_]


async def test_an_agents_override_decides_who_is_asked(gate: Toolgate) -> None:
    for field, kind in (
        ("requires_confirmation", Kind.CONFIRMATION),
        ("requires_approval", Kind.APPROVAL),
    ):
        await gate.tenancy.activate("acme", "billing", "look", overrides={field: True})
        output = await gate.call("look", caller=ANN)
        found = await gate.approvals.find(id_of(output), by="boss")
        assert found is not None
        assert found.kind is kind
    # What the user confirmed before more was asked for is not enough now.
    await gate.tenancy.activate(
        "acme", "billing", "send", overrides={"requires_confirmation": True}
    )
    await gate.approvals.approve(await pending(gate, "send"), by=ANN)
    await gate.tenancy.activate("acme", "billing", "send", overrides={"requires_approval": True})
    assert (await gate.call("send", {"text": "hi"}, caller=ANN, turn=TURN)).status != "success"
    assert ran == []


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("never", set[str]()), ("unsafe_only", {"pay", "send"}), ("always", {"pay", "send", "look"})],
)
async def test_the_mode_says_which_calls_are_asked_about(
    tmp_path: Path, mode: Any, asked: set[str]
) -> None:
    settings = Settings(root=tmp_path, approvals=ApprovalSettings(mode=mode))
    async with Toolgate.open(settings) as gate:
        gate.add(pay, send, look)
        calls: dict[str, dict[str, Any]] = {"pay": {"to": "b"}, "send": {"text": "x"}, "look": {}}
        outputs = {name: await gate.call(name, args, caller=ANN) for name, args in calls.items()}
        assert {name for name, one in outputs.items() if one.status != "success"} == asked
        if "look" in asked:
            await gate.approvals.approve(id_of(outputs["look"]), by="boss")
            assert (await gate.call("look", caller=ANN)).ok
            assert (await gate.call("look", caller=ANN)).status == "pending_approval"


async def test_secrets_are_hidden_and_still_part_of_what_was_agreed_to() -> None:
    def login(user: str, password: str) -> str:
        """Log in."""
        ran.append((user, password))
        return "in"

    schema = {
        "type": "object",
        "properties": {"user": {"type": "string"}, "password": {"format": "password"}},
    }
    marked = tool(effect="irreversible", requires_approval=True, input_schema=schema)(login)
    async with in_memory(marked) as gate:
        id_ = await pending(gate, "login", ANN, user="ann", password=PASSWORD)
        found = await gate.approvals.find(id_, by="boss")
        assert found is not None
        assert "hunter2" not in str(told(found, whole=True))
        assert "hunter2" not in str(found)
        await gate.approvals.approve(id_, by="boss")
        other = await pending(gate, "login", ANN, user="ann", password=f"{PASSWORD}!")
        assert other != id_
        assert (await gate.call("login", {"user": "ann", "password": PASSWORD}, caller=ANN)).ok


HIDING = {
    "bidi": "ann\u202e moc.live@",
    "zero width": "ann\u200b\u2060\ufeff@corp",
    "control": "ann\u001b[2K\u0007",
    "line": "ann\u2028bcc: eve",
    "filler": "ann\u3164\u115f\u2800",
    "selector": "ann\ufe0f\U000e0101",
    "tag": "ann\U000e0061",
}


@pytest.mark.parametrize("what", HIDING)
async def test_what_hides_in_arguments_is_shown(gate: Toolgate, what: str) -> None:
    text = HIDING[what]
    id_ = await pending(gate, to=text)
    found = await gate.approvals.find(id_, by="boss")
    assert found is not None
    for whole in (False, True):
        shown = told(found, whole=whole)["args"]
        assert "ann" in shown
        assert "\\u" in shown.lower()
        assert all(sign == "\n" or sign.isprintable() for sign in shown)
        assert not set(shown) & set("\u3164\u115f\u2800\ufe0f\U000e0101")
    # What is to be seen is left as it is.
    plain = await pending(gate, to="Zoë 漢字 🙂")
    kept = await gate.approvals.find(plain, by="boss")
    assert kept is not None
    assert "Zoë 漢字 🙂" in told(kept)["args"]


async def test_a_tail_that_a_list_does_not_show_blocks_the_approval(gate: Toolgate) -> None:
    id_ = await pending(gate, to="bob" + " " * 100_000 + "and eve")
    [listed] = await gate.approvals.list("acme")
    shown = told(listed)
    assert (shown["is_cut"], len(shown["args"])) == (True, MOST_SHOWN)
    assert "seen" not in shown
    assert "eve" not in shown["args"]
    with pytest.raises(InvalidRequest, match="not looked at whole"):
        await gate.approvals.approve(id_, by="boss")
    for seen in ("true", listed.hash, "0" * 12):
        with pytest.raises(InvalidRequest, match="is not the code that is shown"):
            await gate.approvals.approve(id_, by="boss", seen=seen)
    whole = told(listed, whole=True)
    assert "and eve" in whole["args"]
    assert whole["seen"] == code_of(listed)
    await gate.approvals.approve(id_, by="boss", seen=whole["seen"])
    # Nobody has to look for longer than a screen at what is short.
    await gate.approvals.approve(await pending(gate), by="boss")


async def test_a_house_in_memory_asks_the_same_way() -> None:
    async with in_memory(pay) as gate:
        id_ = await pending(gate)
        await gate.approvals.approve(id_, by="boss")
        assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).ok
        assert (await gate.call("pay", {"to": "bob"}, caller=ANN, turn=TURN)).cached
        assert len(ran) == 1


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


async def test_a_call_whose_caller_has_left_does_not_wait(gate: Toolgate) -> None:
    left = asyncio.Event()
    with presence.until(left):
        waiting = asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, wait_s=50))
    await asyncio.sleep(0)
    left.set()
    began = clock.monotonic_ns()
    id_of(await waiting)
    assert clock.monotonic_ns() - began < 20 * 10**9


async def test_no_more_are_asked_about_than_a_person_could_answer(
    monkeypatch: pytest.MonkeyPatch, gate: Toolgate
) -> None:
    monkeypatch.setattr(kept_rules, "MOST_OF_REQUESTER", 2)
    monkeypatch.setattr(kept_rules, "MOST_OF_TENANT", 3)
    first = await pending(gate, to="1")
    await pending(gate, to="2")
    with pytest.raises(Overloaded, match="nobody is asked"):
        await gate.call("pay", {"to": "3"}, caller=ANN, turn=TURN)
    assert await pending(gate, to="1") == first, "those that wait are not asked about again"
    await pending(gate, caller=BOT, to="3")
    with pytest.raises(Overloaded):
        await gate.call("pay", {"to": "4"}, caller=BOT, turn=TURN)
    assert await pending(gate, caller=Caller(tenant="umbrella", agent="billing"))
    await gate.approvals.deny(first, by="boss", reason="no")
    assert await pending(gate, caller=BOT, to="4")


async def test_what_is_too_long_to_be_looked_at_is_not_kept(gate: Toolgate) -> None:
    with pytest.raises(InvalidRequest, match="nobody can look at"):
        await gate.call("pay", {"to": "x" * 200_000}, caller=ANN, turn=TURN)
    assert await gate.approvals.list("acme") == []
    assert await pending(gate, to="x" * 120_000)
