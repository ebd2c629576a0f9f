"""A record that comes late, or is not the tool's: what the caller and the journal are told."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from toolgate import Call, Caller, Extension, Output, Priority, ToolError, clock, tool
from toolgate.errors import OutOfTime, StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

ME = Caller(tenant="acme", agent="billing")


class Hanging(MemoryJournal):
    """A journal whose store takes a record and does not answer until it is let go."""

    def __init__(self, *, at: str) -> None:
        super().__init__()
        self._at = at
        self.asked, self.release, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        await self._pause("begin")
        return await super().begin(entry, may_start=may_start, basis=basis)

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        await self._pause("end")
        ended = await super().end(entry, again=again)
        self.ended.set()
        return ended

    async def _pause(self, where: str) -> None:
        if where == self._at:
            self.asked.set()
            await self.release.wait()


@pytest.mark.req("X4", "S3")
async def test_a_store_that_hangs_before_the_call_ends_it_in_time_and_says_that_nothing_ran() -> (
    None
):
    ran: list[str] = []

    @tool(effect="irreversible", timeout=0.02)
    async def pay() -> None:
        ran.append("pay")

    async with in_memory(pay, journal=Hanging(at="begin")) as gate:
        with pytest.raises(StoreUnavailable, match="nothing ran"):
            await gate.call("pay", caller=ME)
    assert ran == []


@pytest.mark.req("X4", "S3")
async def test_an_outcome_that_cannot_be_written_does_not_outlast_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolgate.executor.recording.ends._PATIENCE", 0.01)

    @tool(effect="irreversible", timeout=0.02)
    async def pay() -> None:
        await asyncio.Event().wait()

    journal = Hanging(at="end")
    async with in_memory(pay, journal=journal) as gate:
        output = await gate.call("pay", caller=ME)
        assert output.status == "unknown"
        journal.release.set()
        await journal.ended.wait()
        assert [entry.state for entry in await journal.entries("acme")] == ["unknown"]


@pytest.mark.req("X2", "S3")
async def test_arguments_that_change_while_the_record_is_written_are_not_the_ones_that_run() -> (
    None
):
    seen: list[int] = []

    @tool(effect="irreversible")
    async def pay(amount: int) -> None:
        seen.append(amount)

    journal = Hanging(at="begin")
    args: dict[str, Any] = {"amount": 1}
    async with in_memory(pay, journal=journal) as gate:
        paying = asyncio.create_task(gate.call("pay", args, caller=ME))
        await journal.asked.wait()
        args["amount"] = 10**9
        journal.release.set()
        assert (await paying).ok
    assert seen == [1]


class Instead(Extension):
    """Answers between the record and the tool."""

    priority = Priority.LOW

    def before(self, call: Call) -> Output:
        return Output(status="skipped", data="not today", call_id=call.id)


@pytest.mark.req("X3", "S3")
@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_a_tool_that_an_extension_answered_for_is_not_on_record_as_done(effect: Any) -> None:
    ran: list[str] = []

    @tool(effect=effect)
    async def pay() -> None:
        ran.append("pay")

    journal = MemoryJournal()
    async with in_memory(pay, journal=journal, extensions=[Instead()]) as gate:
        assert (await gate.call("pay", caller=ME)).status == "skipped"
        await journal.drain()
        (entry,) = await journal.entries("acme")
    assert (entry.state, entry.error_code) == ("failed", "not_run")
    assert ran == []


class Stalled(MemoryJournal):
    """An owner that stands still behind its claim, for longer than its lease."""

    def __init__(self, stand_still: Callable[[], None]) -> None:
        super().__init__(lease=10.0)
        self._stand_still = stand_still

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        begun = await super().begin(entry, may_start=may_start, basis=basis)
        self._stand_still()
        return begun


@pytest.mark.req("S2", "S3")
@pytest.mark.parametrize("seconds", [9, 11])
async def test_an_owner_that_stood_still_past_its_lease_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def pay() -> None:
        ran.append("pay")

    def stand_still() -> None:
        real = clock.monotonic_ns
        monkeypatch.setattr(clock, "monotonic_ns", lambda: real() + seconds * 10**9)

    journal = Stalled(stand_still)
    async with in_memory(pay, journal=journal) as gate:
        if seconds < 10:
            assert (await gate.call("pay", caller=ME)).ok
        else:
            with pytest.raises(OutOfTime, match="did not run"):
                await gate.call("pay", caller=ME)
    assert ran == (["pay"] if seconds < 10 else [])
    assert [str(entry.state) for entry in journal.calls] == ["succeeded" if ran else "failed"]


@pytest.mark.req("S2")
async def test_without_a_look_at_its_lease_it_would_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def pay() -> None:
        ran.append("pay")

    def stand_still() -> None:
        real = clock.monotonic_ns
        monkeypatch.setattr(clock, "monotonic_ns", lambda: real() + 11 * 10**9)

    def always(_journal: object, _call_id: str) -> bool:
        return True

    monkeypatch.setattr(Stalled, "holds", always)
    async with in_memory(pay, journal=Stalled(stand_still)) as gate:
        await gate.call("pay", caller=ME)
    assert ran == ["pay"], "the guard is what the test above stands on"


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    ("effect", "state"), [("irreversible", "unknown"), ("idempotent", "failed")]
)
async def test_an_attempt_that_fails_says_nothing_about_the_one_before_it(
    effect: Any, state: str
) -> None:
    reached, beside = asyncio.Event(), MemoryJournal(lease=0.01)
    fails = False

    @tool(effect=effect, downstream_key={"header": "Idempotency-Key"})
    async def send(call: Call) -> None:
        if fails:
            raise ToolError("out of stock")
        reached.set()
        await asyncio.Event().wait()

    journal = MemoryJournal(lease=0.01, beside=beside)
    async with in_memory(send, journal=beside) as first, in_memory(send, journal=journal) as second:
        lost = asyncio.create_task(first.call("send", caller=ME, idempotency_key="k"))
        await reached.wait()
        fails = True
        # It waits for its twin's lease to end, and takes over.
        output = await second.call("send", caller=ME, idempotency_key="k", wait_s=5)
        assert output.error is not None
        [entry] = journal.calls
        assert (str(entry.state), entry.fence) == (state, 2)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        assert str(journal.calls[0].state) == state
