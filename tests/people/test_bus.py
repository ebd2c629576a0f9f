"""Events to the turn and to subscribers: started, completed, failed, for each side effect."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, open_gate
from toolgate import Caller, ToolError, Turn, tool
from toolgate.call import Event
from toolgate.executor.people.bus import LOST, Bus
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Ended
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("S7")


@tool(effect="irreversible")
async def send(to: str) -> dict[str, str]:
    """Send a mail."""
    if to == "nobody":
        raise ToolError("There is no such person.")
    if to == "broken":
        raise ValueError(to)
    return {"sent": to}


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


async def test_a_turn_is_told_what_starts_and_how_it_ends(tmp_path: Path) -> None:
    told: list[Event] = []
    turn = Turn(group="t1", id="1", emit=told.append)
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        output = await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert kinds(told) == ["side_effect.started", "side_effect.completed"]
        started, completed = told
        assert {(one.tenant, one.agent, one.tool, one.call_id) for one in told} == {
            ("acme", "billing", "send", output.call_id)
        }
        assert (completed.turn_group, completed.turn_id) == ("t1", "1")
        assert completed.payload["args"] == {"to": "bob"}
        assert completed.payload["result"] == {"sent": "bob"}
        assert completed.payload["effect"] == "irreversible"
        assert "idempotency_key" not in completed.payload, "it is nobody else's business"
        assert started.id != completed.id
        told.clear()
        await gate.call("send", {"to": "nobody"}, caller=ME, turn=turn)
        await gate.call("send", {"to": "broken"}, caller=ME, turn=turn)
        assert kinds(told) == [
            "side_effect.started",
            "side_effect.failed",
            "side_effect.started",
            "side_effect.unknown",
        ]
        told.clear()
        # Answered from the record: nothing happened, so nothing is told.
        await gate.call("send", {"to": "bob"}, caller=ME, turn=turn)
        assert told == []


async def test_pure_calls_are_not_spoken_of() -> None:
    told: list[Event] = []
    async with in_memory(look) as gate:
        events = gate.events()
        assert (await gate.call("look", caller=ME, turn=Turn(group="t", emit=told.append))).ok
        events.close()
        assert [event async for event in events] == []
        assert told == []


async def test_a_turn_may_be_told_later() -> None:
    told: list[Event] = []

    async def emit(event: Event) -> None:
        await asyncio.sleep(0)
        told.append(event)

    async with in_memory(send) as gate:
        await gate.call("send", {"to": "bob"}, caller=ME, turn=Turn(group="t", emit=emit))
        assert kinds(told) == ["side_effect.started", "side_effect.completed"]


async def test_a_turn_that_cannot_be_told_does_not_fail_its_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def emit(_event: Event) -> None:
        raise ValueError("secret words")

    async with in_memory(send) as gate:
        with caplog.at_level(logging.WARNING):
            assert (
                await gate.call("send", {"to": "b"}, caller=ME, turn=Turn(group="t", emit=emit))
            ).ok
        assert caplog.text.count("could not be told") == 2
        assert "secret words" not in caplog.text


async def test_a_turn_that_takes_too_long_to_be_told_does_not_hold_up_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolgate.executor.people.bus._PATIENCE", 0.05)

    async def emit(_event: Event) -> None:
        await asyncio.Event().wait()

    async with in_memory(send) as gate:
        assert (await gate.call("send", {"to": "b"}, caller=ME, turn=Turn(group="t", emit=emit))).ok


async def test_a_call_that_is_given_up_while_its_turn_is_told_has_not_happened() -> None:
    telling = asyncio.Event()

    async def emit(_event: Event) -> None:
        telling.set()
        await asyncio.Event().wait()

    async with in_memory(send) as gate:
        turn = Turn(group="t", emit=emit)
        call = asyncio.create_task(gate.call("send", {"to": "b"}, caller=ME, turn=turn))
        await telling.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        [entry] = await gate.journal.entries("acme")
        assert (entry.state, entry.error_code) == ("failed", "cancelled")


async def test_how_a_call_ended_is_told_also_where_its_caller_did_not_wait_for_the_record() -> None:
    writing, go_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryJournal):
        async def end(self, entry: Entry, *, again: bool = False) -> Ended:
            writing.set()
            await go_on.wait()
            return await super().end(entry, again=again)

    async with in_memory(send, journal=Slow()) as house:
        events = house.events("acme")
        sending = asyncio.create_task(house.call("send", {"to": "bob"}, caller=ME))
        await writing.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        go_on.set()
        async with asyncio.timeout(10):
            told = [(await anext(events)).kind for _ in range(2)]
    assert told == ["side_effect.started", "side_effect.completed"]


async def test_how_a_call_ended_is_told_also_where_that_is_on_record_long_after_its_time() -> None:
    go_on = asyncio.Event()

    class Slow(MemoryJournal):
        async def end(self, entry: Entry, *, again: bool = False) -> Ended:
            await go_on.wait()
            return await super().end(entry, again=again)

    @tool(effect="irreversible", timeout=0.02)
    async def hang() -> None:
        """Do it for ever."""
        await asyncio.Event().wait()

    async with in_memory(hang, journal=Slow()) as house:
        events = house.events("acme")
        assert (await house.call("hang", caller=ME)).status == "unknown"
        go_on.set()
        async with asyncio.timeout(10):
            told = [(await anext(events)).kind for _ in range(2)]
    assert told == ["side_effect.started", "side_effect.unknown"]


async def test_a_subscriber_hears_its_own_tenant_only() -> None:
    async with in_memory(send) as gate:
        own, other, everyone = gate.events("acme"), gate.events("umbrella"), gate.events()
        await gate.call("send", {"to": "bob"}, caller=ME)
        await gate.call("send", {"to": "eve"}, caller=Caller(tenant="umbrella", agent="x"))
    # The house is closed: what was held can be read, and then it is over.
    assert {event.tenant async for event in own} == {"acme"}
    assert {event.tenant async for event in other} == {"umbrella"}
    assert len([event async for event in everyone]) == 4


async def test_a_subscriber_hears_what_persons_are_asked_and_decide() -> None:
    @tool(effect="irreversible", requires_approval=True)
    async def pay() -> None:
        """Pay."""

    told: list[Event] = []
    async with in_memory(pay) as gate:
        events = gate.events()
        await gate.call("pay", caller=ME, turn=Turn(group="t", emit=told.append))
        asked = await anext(events)
        await gate.approvals.deny(asked.payload["approval_id"], by="boss", reason="no")
        decided = await anext(events)
        assert kinds([asked, decided]) == ["approval.requested", "approval.denied"]
        assert (decided.payload["decided_by"], decided.payload["reason"]) == ("boss", "no")
        assert told == [asked]


def event(number: int) -> Event:
    return Event(id=str(number), kind="k", at_ns=1, tenant="acme", agent="", tool="", call_id="c")


async def test_a_slow_subscriber_loses_the_oldest_and_is_told_how_many() -> None:
    bus = Bus()
    slow = bus.subscribe(most=3)
    for number in range(8):
        await bus.publish(event(number))
    bus.close()
    lost, *rest = [one async for one in slow]
    assert (lost.kind, lost.payload) == (LOST, {"lost": 5})
    assert [one.id for one in rest] == ["5", "6", "7"]


async def test_who_lets_go_of_a_subscription_is_forgotten() -> None:
    bus = Bus()
    kept: Any = bus.subscribe()
    assert len(bus) == 1
    del kept
    assert len(bus) == 0


async def test_a_subscriber_waits_for_what_comes() -> None:
    bus = Bus()
    events = bus.subscribe("acme")
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    await bus.publish(event(1))
    assert (await waiting).id == "1"
