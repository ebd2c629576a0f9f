"""What sends events goes on, whatever a sink or a store does."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from tests.house import until
from tests.people.test_outbox import event
from toolgate.call import Event
from toolgate.ledger.events import Waiting
from toolgate.sinks.publisher import Publisher
from toolgate.testing.outbox import MemoryOutbox

pytestmark = pytest.mark.req("S7")


class Sink:
    """Takes every event but those that it raises at."""

    def __init__(self, *bad: str) -> None:
        self.bad = set(bad)
        self.arrived: list[str] = []

    async def send(self, event: Event) -> str:
        if event.id in self.bad:
            raise ValueError(f"cannot write {event.payload}")
        self.arrived.append(event.id)
        return ""


class Unsteady(MemoryOutbox):
    """Fails for the first few looks, with anything."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def take(self, limit: int, lease: float) -> Sequence[Waiting]:
        if self.left:
            self.left -= 1
            raise RuntimeError("a driver of its own kind")
        return await super().take(limit, lease)


async def test_one_event_that_cannot_be_sent_holds_up_no_other() -> None:
    outbox, sink = MemoryOutbox(), Sink("bad")
    for number, name in enumerate(("bad", "good", "better")):
        outbox.put(event(name, f"call_{number}"))
    assert await Publisher(outbox, sink).once() == 3
    assert sorted(sink.arrived) == ["better", "good"]
    assert await outbox.waiting() == 1, "it is tried again later"


async def test_nothing_that_fails_ends_the_sending(caplog: pytest.LogCaptureFixture) -> None:
    outbox, sink = Unsteady(2), Sink()
    outbox.put(event("a"))
    with caplog.at_level(logging.ERROR):
        sending = asyncio.create_task(Publisher(outbox, sink).run())
        try:
            await until(lambda: sink.arrived == ["a"] or sending.done())
            assert not sending.done()
        finally:
            sending.cancel()
    assert sink.arrived == ["a"]
    assert "RuntimeError" in caplog.text
    assert "of its own kind" not in caplog.text
