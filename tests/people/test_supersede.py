"""Newer messages before what cannot be taken back: the agent's policy decides."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, open_gate, states, until
from toolgate import Caller, Toolgate, Turn, tool
from toolgate.errors import InvalidRequest
from toolgate.ledger.state import State
from toolgate.settings.execution import Limits
from toolgate.settings.settings import Settings
from toolgate.tenancy.capsule import NewerMessages
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("S5")
ran: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(effect="irreversible", idempotency_key=["to"])
async def send(to: str) -> dict[str, Any]:
    """Send a mail."""
    ran.append(to)
    return {"sent": to, "number": len(ran)}


@tool(effect="compensatable", compensation={"tool": "send", "args": {"to": "$args.to"}})
async def book(to: str) -> str:
    """Book something that can be taken back."""
    ran.append(to)
    return "booked"


class Messages:
    """The newer messages of a turn, and whether it was asked for them."""

    def __init__(self, *, waiting: bool = True) -> None:
        self.waiting = waiting
        self.asked = 0
        self.absorbed = 0

    def has(self) -> bool:
        self.asked += 1
        return self.waiting

    async def has_async(self) -> bool:
        await asyncio.sleep(0)
        return self.has()

    async def absorb(self) -> None:
        self.absorbed += 1
        self.waiting = False

    def turn(self, group: str = "t1", **hooks: Any) -> Turn:
        return Turn(group=group, has_pending_messages=self.has, **hooks)


async def test_without_a_policy_a_newer_message_comes_first_and_nothing_runs(
    tmp_path: Path,
) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        output = await gate.call("send", {"to": "bob"}, caller=ME, turn=Messages().turn())
        assert output.status == "superseded"
        assert output.error is not None
        assert (output.error.code, ran) == ("superseded", [])
        assert await states(gate) == [("send", "superseded", "superseded")]
        # The key is free: the turn that follows does it.
        later = Turn(group="t1", id="2")
        assert (await gate.call("send", {"to": "bob"}, caller=ME, turn=later)).ok


@pytest.mark.parametrize("hook", ["has", "has_async"])
@pytest.mark.parametrize("waiting", [False, True])
async def test_the_turn_may_answer_at_once_or_later(
    hook: str,
    waiting: bool,  # noqa: FBT001
) -> None:
    messages = Messages(waiting=waiting)
    turn = Turn(group="t1", has_pending_messages=getattr(messages, hook))
    async with in_memory(send) as gate:
        output = await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert output.status == ("superseded" if waiting else "success")
        assert len(ran) == (0 if waiting else 1)
        assert messages.asked == 1


@pytest.mark.parametrize(
    ("policy", "status", "absorbed"),
    [
        ("supersede", "superseded", 0),
        ("absorb", "success", 1),
        ("force_complete", "success", 0),
        ("queue", "success", 0),
    ],
)
async def test_the_agents_policy_decides(policy: Any, status: str, absorbed: int) -> None:
    messages = Messages()
    async with in_memory(send) as gate:
        await gate.tenancy.set_newer_messages("acme", "billing", policy)
        turn = messages.turn(absorb_messages=messages.absorb)
        output = await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert (output.status, messages.absorbed) == (status, absorbed)
        # Another agent of the tenant has its own.
        other = Caller(tenant="acme", agent="other")
        turn = Messages().turn("t2")
        assert (
            await gate.call("send", {"to": "b"}, caller=other, turn=turn)
        ).status == "superseded"


async def test_absorbing_without_a_way_to_absorb_is_to_supersede() -> None:
    async with in_memory(send) as gate:
        await gate.tenancy.set_newer_messages("acme", "billing", NewerMessages.ABSORB)
        output = await gate.call("send", {"to": "bob"}, caller=ME, turn=Messages().turn())
        assert (output.status, ran) == ("superseded", [])


async def test_only_what_cannot_be_taken_back_is_asked_about() -> None:
    messages = Messages()
    async with in_memory(send, book) as gate:
        assert (await gate.call("book", {"to": "bob"}, caller=ME, turn=messages.turn())).ok
        assert messages.asked == 0


def raises() -> bool:
    raise ValueError("secret words")


BAD = {
    "raises": raises,
    "a number": lambda: 1,
    "a text": lambda: "false",
    "nothing": lambda: None,
    "an object": object,
}


@pytest.mark.parametrize("what", BAD)
async def test_a_turn_that_cannot_tell_keeps_the_call_from_running(what: str) -> None:
    async with in_memory(send) as gate:
        await gate.tenancy.set_newer_messages("acme", "billing", "force_complete")
        turn = Turn(group="t1", has_pending_messages=BAD[what])  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidRequest, match="nothing ran") as refused:
            await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert "secret words" not in str(refused.value)
        assert ran == []


async def test_a_turn_that_never_answers_keeps_the_call_from_running() -> None:
    async def never() -> bool:
        await asyncio.Event().wait()
        return False

    @tool(effect="irreversible", timeout=0.05)
    async def hasty() -> None:
        """Be quick."""
        ran.append("hasty")

    async with in_memory(hasty) as gate:
        turn = Turn(group="t1", has_pending_messages=never)
        with pytest.raises(InvalidRequest, match="in time"):
            await gate.call("hasty", caller=ME, turn=turn)
        assert ran == []


async def test_absorbing_that_fails_keeps_the_call_from_running() -> None:
    async with in_memory(send) as gate:
        await gate.tenancy.set_newer_messages("acme", "billing", "absorb")
        turn = Messages().turn(absorb_messages=raises)
        with pytest.raises(InvalidRequest, match="absorb_messages"):
            await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert ran == []


async def test_a_message_that_comes_while_a_person_is_asked_comes_first() -> None:
    """The turn is asked behind the wait: what was said in the meantime counts."""

    @tool(effect="irreversible", requires_confirmation=True)
    async def careful() -> str:
        """Be careful."""
        ran.append("careful")
        return "done"

    messages = Messages(waiting=False)
    ann = Caller(tenant="acme", agent="billing", user="ann")
    async with in_memory(careful) as gate:
        events = gate.events()
        waiting = asyncio.create_task(
            gate.call("careful", caller=ann, turn=messages.turn(), wait_s=30)
        )
        asked = await anext(events)
        messages.waiting = True
        await gate.approvals.approve(asked.payload["approval_id"], by=ann)
        assert (await waiting).status == "superseded"
        assert ran == []
        # The approval stays, for whoever makes the call after the messages were read.
        messages.waiting = False
        assert (await gate.call("careful", caller=ann, turn=messages.turn())).ok


async def test_a_message_that_comes_while_a_call_waits_for_its_place_comes_first(
    tmp_path: Path,
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def hog() -> None:
        """Take the only place."""
        begun.set()
        await go.wait()

    messages = Messages(waiting=False)
    async with Toolgate.open(Settings(root=tmp_path, limits=Limits(concurrency=1))) as gate:
        gate.add(send, hog)
        first = asyncio.create_task(gate.call("hog", caller=ME))
        await begun.wait()
        waiting = asyncio.create_task(
            gate.call("send", {"to": "bob"}, caller=ME, turn=messages.turn())
        )
        await until(lambda: messages.asked == 1)
        while not any(one.tool == "send" for one in await gate.journal.entries("acme")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        messages.waiting = True
        go.set()
        output = await waiting
        assert (output.status, messages.asked, ran) == ("superseded", 2, [])
        await first
        entry = await gate.journal.find("acme", output.call_id)
        assert entry is not None
        # It was begun on record, so it ends there: nothing happened, and its key is free.
        assert (entry.state, entry.error_code) == (State.FAILED, "superseded")
        messages.waiting = False
        assert (await gate.call("send", {"to": "bob"}, caller=ME, turn=messages.turn())).ok
        assert ran == ["bob"]


async def test_a_call_that_waits_nowhere_is_asked_about_once() -> None:
    messages = Messages(waiting=False)
    async with in_memory(send) as gate:
        assert (await gate.call("send", {"to": "bob"}, caller=ME, turn=messages.turn())).ok
        assert messages.asked == 1


async def test_a_waiting_approval_of_a_superseded_turn_stays() -> None:
    @tool(effect="irreversible", requires_approval=True)
    async def careful() -> str:
        """Be careful."""
        return "done"

    async with in_memory(careful, send) as gate:
        await gate.call("careful", caller=ME, turn=Turn(group="t1", id="1"))
        turn = Messages().turn("t1", id="1")
        assert (await gate.call("send", {"to": "b"}, caller=ME, turn=turn)).status == "superseded"
        assert len(await gate.approvals.list("acme")) == 1


@pytest.mark.req("S2")
async def test_a_turn_that_takes_the_place_of_another_gets_the_first_result(
    tmp_path: Path,
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @tool(effect="irreversible", idempotency_key=["to"])
    async def mail(to: str) -> str:
        """Send a mail, slowly."""
        ran.append(to)
        begun.set()
        await go.wait()
        return f"mail {len(ran)} to {to}"

    async with open_gate(tmp_path) as gate:
        gate.add(mail)

        async def call(turn: Turn) -> Any:
            return await gate.call("mail", {"to": "bob"}, caller=ME, turn=turn, wait_s=20)

        first = asyncio.create_task(call(Turn(group="t1", id="1")))
        await begun.wait()
        second = asyncio.create_task(call(Turn(group="t1", id="2")))
        while True:
            [entry] = await gate.journal.entries("acme")
            if entry.wanted_by == "2":
                break
            await asyncio.sleep(0.01)
        go.set()
        late, taken = await asyncio.gather(first, second)
        assert (taken.data, taken.cached, ran) == ("mail 1 to bob", True, ["bob"])
        # What the first turn would have said is not delivered.
        assert (late.status, late.data) == ("superseded", None)
        # A queued turn has a group of its own, and is a piece of business of its own.
        queued = await call(Turn(group="t2", id="3"))
        assert (queued.data, queued.cached) == ("mail 2 to bob", False)
