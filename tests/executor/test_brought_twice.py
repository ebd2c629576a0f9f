"""A queued call that two workers have at once: the second ends nothing that the first has begun."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.blank import put_blank
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED, open_at
from toolgate import Caller, clock, tool
from toolgate.call import Output, new_call_id
from toolgate.errors import InProgress, StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun
from toolgate.queue.message import VERSION, Request
from toolgate.runtime import Runtime
from toolgate.store.journal import TableJournal
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("S2", "S3", "P6")
ME = Caller(tenant="acme", agent="billing")
# From before its claim is asked for until long after it waits for the one that runs.
MOMENTS = (1, 2, 3, 5, 10, 100)


class Held:
    """A tool that stays where it is until it is let go."""

    def __init__(self) -> None:
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        self.ran: list[int] = []

        @tool(effect="irreversible")
        async def pay(amount: int) -> int:
            """Pay."""
            self.begun.set()
            await self.release.wait()
            self.ran.append(amount)
            return amount

        self.pay = pay


@pytest.fixture(params=SHARED)
async def journals(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Sequence[TableJournal]]:
    """Of two owners, over one table."""
    async with AsyncExitStack() as stack:
        if request.param == FILE:
            put_blank(tmp_path / "toolgate.db")
            url = f"sqlite:///{tmp_path / 'toolgate.db'}"
        else:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        database = open_at(url)
        stack.push_async_callback(database.close)
        yield [TableJournal(database) for _ in range(2)]


def brought(house: Runtime, call_id: str) -> "asyncio.Task[Output]":
    request = Request(version=VERSION, id=call_id, tool="pay", args={"amount": 1}, caller=ME)
    return asyncio.ensure_future(house.deliveries.run(request))


async def recorded(journals: Sequence[TableJournal]) -> list[Entry]:
    for journal in journals:
        await journal.drain()
    return list(await journals[0].entries("acme"))


@pytest.mark.parametrize("is_same_worker", [False, True])
async def test_who_goes_away_with_a_call_that_another_runs_leaves_it_alone(
    journals: Sequence[TableJournal], *, is_same_worker: bool
) -> None:
    for moments in MOMENTS:
        held, call_id = Held(), new_call_id(clock.unix_ns())
        first, second = journals[0], journals[0 if is_same_worker else 1]
        async with in_memory(held.pay, journal=first) as one:
            async with in_memory(held.pay, journal=second) as other:
                running = brought(one, call_id)
                await held.begun.wait()
                late = brought(one if is_same_worker else other, call_id)
                for _ in range(moments):
                    await asyncio.sleep(0)
                late.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await late
            # What it wrote behind itself is written by now.
            assert (await recorded(journals))[0].state == "started"
            assert first.holds(call_id)
            held.release.set()
            assert (await running).status == "success"
        entries = [one for one in await recorded(journals) if one.call_id == call_id]
        assert [(entry.state, entry.fence) for entry in entries] == [("succeeded", 1)]
        assert held.ran == [1]


async def test_who_may_not_wait_for_a_call_that_another_runs_leaves_nothing_on_record(
    journals: Sequence[TableJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.testing.house._WAIT", 0.0)
    held, call_id = Held(), new_call_id(clock.unix_ns())
    one, other = (in_memory(held.pay, journal=journal) for journal in journals)
    async with one as here, other as there:
        running = brought(here, call_id)
        await held.begun.wait()
        with pytest.raises(InProgress):
            await brought(there, call_id)
        held.release.set()
        assert (await running).status == "success"
    assert [entry.state for entry in await recorded(journals)] == ["succeeded"]


async def test_who_goes_away_with_a_call_that_nobody_runs_leaves_it_to_be_brought_again(
    journals: Sequence[TableJournal],
) -> None:
    """The control: its own claim is its to end, and nothing was tried."""
    held, call_id = Held(), new_call_id(clock.unix_ns())
    async with in_memory(held.pay, journal=journals[0]) as house:
        going = brought(house, call_id)
        while not await journals[1].find("acme", call_id):  # noqa: ASYNC110  its claim is made
            await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
    (entry,) = await recorded(journals)
    assert (entry.state, entry.fence) in {("released", 1), ("unknown", 1)}
    assert entry.state == "unknown" or not held.begun.is_set()
    assert held.ran == []


class Late(MemoryJournal):
    """A journal whose store is slow with the claims of one worker."""

    def __init__(self, beside: MemoryJournal) -> None:
        super().__init__(beside=beside)
        self.go = asyncio.Event()
        self.answered = asyncio.Event()

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        await self.go.wait()
        begun = await super().begin(entry, may_start=may_start, basis=basis)
        self.answered.set()
        return begun


async def test_a_claim_that_is_answered_when_nobody_waits_for_it_any_more_ends_nothing() -> None:
    """It is another's by then: what is on record of the call is what that one writes."""
    held, call_id, journal = Held(), new_call_id(clock.unix_ns()), MemoryJournal()
    slow = Late(journal)

    @tool(effect="irreversible", timeout=0.02)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    async with in_memory(held.pay, journal=journal) as one, in_memory(pay, journal=slow) as other:
        running = brought(one, call_id)
        await held.begun.wait()
        with pytest.raises(StoreUnavailable):
            await brought(other, call_id)
        slow.go.set()
        await slow.answered.wait()
        held.release.set()
        assert (await running).status == "success"
    assert [(entry.state, entry.fence) for entry in journal.calls] == [("succeeded", 1)]
