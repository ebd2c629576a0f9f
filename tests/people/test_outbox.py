"""One suite for every outbox: the twin in memory, SQLite and PostgreSQL."""

import asyncio

import pytest

from tests.people.conftest import Box
from toolgate.call import Event

pytestmark = pytest.mark.req("S7", "D1")
LONG = 60.0


def event(name: str, call_id: str = "call_1") -> Event:
    return Event(
        id=name,
        kind="side_effect.started",
        at_ns=1,
        tenant="acme",
        agent="clerk",
        tool="pay",
        call_id=call_id,
        payload={"text": "é 🙂 \0"},
    )


async def taken(box: Box, limit: int = 10) -> list[str]:
    return [one.event.id for one in await box.outbox.take(limit, LONG)]


async def test_events_of_one_key_come_out_one_after_the_other(box: Box) -> None:
    for name in ("a", "b"):
        await box.put(event(name))
    await box.put(event("c", "call_2"))
    [first, other] = await box.outbox.take(10, LONG)
    assert (first.event.id, other.event.id, first.attempts) == ("a", "c", 1)
    assert await taken(box) == []
    await box.outbox.sent([first.number])
    assert await taken(box) == ["b"]
    assert await box.outbox.waiting() == 2


async def test_a_key_of_its_own_orders_events_of_several_calls(box: Box) -> None:
    await box.put(event("a", "call_1"), key="turn")
    await box.put(event("b", "call_2"), key="turn")
    assert await taken(box) == ["a"]


async def test_what_was_taken_is_nobody_elses_until_its_lease_is_over(box: Box) -> None:
    await box.put(event("a"))
    [held] = await box.outbox.take(10, 0.0)
    [again] = await box.outbox.take(10, LONG)
    assert (again.number, again.attempts) == (held.number, 2)
    assert await taken(box) == []


async def test_what_has_not_arrived_is_due_later_and_holds_up_its_key_only(box: Box) -> None:
    for name, call in (("a", "1"), ("b", "1"), ("c", "2")):
        await box.put(event(name, call))
    first, _second = await box.outbox.take(10, LONG)
    await box.outbox.later(first.number, LONG)
    assert await taken(box) == []
    await box.outbox.later(first.number, 0.0)
    [again] = await box.outbox.take(10, LONG)
    assert (again.event, again.attempts) == (first.event, 2)


async def test_no_event_is_given_to_two(box: Box) -> None:
    for number in range(40):
        await box.put(event(f"e{number}", f"call_{number}"))
    got = await asyncio.gather(*(box.outbox.take(10, LONG) for _ in range(4)))
    numbers = [one.number for part in got for one in part]
    assert len(numbers) == len(set(numbers))
    while rest := await box.outbox.take(10, LONG):
        numbers += [one.number for one in rest]
    assert len(numbers) == len(set(numbers)) == 40
