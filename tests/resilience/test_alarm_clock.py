"""One timer for the deadlines of all calls: each ends in its own time, and none before."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.house import ME
from toolgate import Output, clock, tool
from toolgate.call import Call, Grant, new_call_id
from toolgate.errors import Overloaded, TimedOut
from toolgate.executor.extension import Handler
from toolgate.executor.resilience.deadline import Deadline, is_overdue
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("X4")
MS = 1_000_000
LONG_MS = 60_000
# A busy machine is late, but not by that much.
LATE_MS = 10_000
Run = Callable[[], Awaitable[Any]]


@tool(effect="pure")
async def waits() -> None:
    """Wait for ever."""


async def for_ever() -> None:
    await asyncio.Event().wait()


class House(NamedTuple):
    """A deadline, and what it is told of."""

    deadline: Deadline
    grant: Grant

    def call(self, ms: float) -> Call:
        now = clock.monotonic_ns()
        until_ns = now + round(ms * MS)
        return Call(new_call_id(now), self.grant, {}, None, now, until_ns, began_ns=now)

    def around(self, work: Run) -> Handler:
        async def run(call: Call) -> Output:
            return Output(status="success", data=await work(), call_id=call.id)

        return self.deadline.link(run)

    async def late(self, ms: float, work: Run = for_ever) -> float:
        """By how many milliseconds it ended behind its deadline."""
        call = self.call(ms)
        with pytest.raises(TimedOut):
            await self.around(work)(call)
        return (clock.monotonic_ns() - call.until_ns) / MS


@pytest.fixture
async def house() -> AsyncGenerator[House]:
    async with in_memory(waits) as runtime:
        yield House(Deadline(), await runtime.gate.decide(ME, "waits"))


def cancels() -> int:
    """How many have asked for the end of this task and not taken it back."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


def stand_still(until_ns: int) -> None:
    """So that all that is due by then is due at once."""
    while clock.monotonic_ns() <= until_ns:
        pass


@pytest.mark.parametrize("order", ["rising", "falling", "mixed", "equal"])
async def test_each_call_ends_in_time_and_not_before(house: House, order: str) -> None:
    spans = [5.0 + 3 * at for at in range(40)]
    if order == "falling":
        spans.reverse()
    elif order == "mixed":
        random.Random(7).shuffle(spans)  # noqa: S311  any order, the same each time
    elif order == "equal":
        spans = [20.0] * 40
    late = await asyncio.gather(*map(house.late, spans))
    assert min(late) >= 0
    assert max(late) < LATE_MS
    assert cancels() == 0


async def test_two_thousand_that_end_one_after_the_other_all_end(house: House) -> None:
    late = await asyncio.gather(*(house.late(50 + at / 2) for at in range(2_000)))
    assert len(late) == 2_000
    assert min(late) >= 0
    assert max(late) < LATE_MS


async def test_a_later_call_with_an_earlier_deadline_does_not_wait_for_the_first(
    house: House,
) -> None:
    first = asyncio.ensure_future(house.late(LONG_MS))
    await asyncio.sleep(0)
    assert 0 <= await house.late(20) < LATE_MS
    # And again, once it has rung for that one.
    assert 0 <= await house.late(20) < LATE_MS
    assert not first.done()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_call_that_ended_early_keeps_nobody_from_ending(house: House) -> None:
    """It rings for one that is gone, and goes on to the next."""
    quick = house.around(lambda: asyncio.sleep(0))
    call = house.call(10)
    assert (await quick(call)).ok
    assert 0 <= await house.late(40) < LATE_MS


@pytest.mark.parametrize("first", ["caller", "deadline"])
async def test_who_is_cancelled_at_the_moment_of_its_deadline_is_cancelled(
    house: House, first: str
) -> None:
    call = house.call(5)
    calling = asyncio.ensure_future(house.around(for_ever)(call))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    stand_still(call.until_ns)
    if first == "caller":
        calling.cancel()
    else:
        # Behind the timer, which is due by now, and before the task.
        loop.call_at(loop.time(), calling.cancel)
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert calling.cancelled()
    assert cancels() == 0


async def test_the_caller_goes_on_as_if_nothing_had_been_cancelled(house: House) -> None:
    for _ in range(3):
        await house.late(5)
        assert cancels() == 0
        await asyncio.sleep(0.001)
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
        await house.late(5)


async def test_the_tool_is_told_that_it_is_the_deadline_and_not_its_caller(house: House) -> None:
    seen: list[BaseException] = []

    async def noted() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError as error:
            seen.append(error)
            raise

    await house.late(5, noted)
    calling = asyncio.ensure_future(house.around(noted)(house.call(LONG_MS)))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert list(map(is_overdue, seen)) == [True, False]


async def test_what_a_tool_says_instead_of_ending_is_its_answer(house: House) -> None:
    async def stubborn() -> str:
        try:
            await for_ever()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done all the same"

    output = await house.around(stubborn)(house.call(5))
    assert output.data == "done all the same"
    assert cancels() == 0
    await asyncio.sleep(0.001)


async def test_what_a_tool_raises_instead_of_ending_is_its_error(house: House) -> None:
    async def broken() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            raise ZeroDivisionError from None

    with pytest.raises(ZeroDivisionError):
        await house.around(broken)(house.call(5))
    assert cancels() == 0


async def test_a_timeout_around_a_call_is_its_own(house: House) -> None:
    near, far = asyncio.timeout(0.01), asyncio.timeout(LONG_MS / 1_000)
    with pytest.raises(TimeoutError):
        async with near:
            await house.around(for_ever)(house.call(LONG_MS))
    assert near.expired()
    async with far:
        await house.late(5)
    assert not far.expired()
    # Inside of it, one is the tool's own affair.
    caught: list[str] = []

    async def careful() -> None:
        try:
            async with asyncio.timeout(0.005):
                await for_ever()
        except TimeoutError:
            caught.append("inside")

    assert (await house.around(careful)(house.call(LONG_MS))).ok
    assert caught == ["inside"]
    assert cancels() == 0


async def test_a_timeout_around_a_call_that_is_due_with_it_is_not_lost(house: House) -> None:
    call, loop = house.call(5), asyncio.get_running_loop()
    loop.call_soon(stand_still, call.until_ns)
    limit = asyncio.timeout_at(loop.time() + 0.001)
    with pytest.raises(TimeoutError):
        async with limit:
            await house.around(for_ever)(call)
    assert limit.expired()
    assert cancels() == 0


async def test_closing_ends_those_that_wait_and_lets_nobody_in(house: House) -> None:
    calling = [asyncio.ensure_future(house.around(for_ever)(house.call(LONG_MS))) for _ in "12345"]
    quick = asyncio.ensure_future(house.around(lambda: asyncio.sleep(0))(house.call(LONG_MS)))
    await asyncio.sleep(0)
    await house.deadline.drain(0.02)
    assert (await quick).ok, "there was time for it"
    ended = await asyncio.gather(*calling, return_exceptions=True)
    assert [type(one) for one in ended] == [TimedOut] * 5
    with pytest.raises(Overloaded, match="closing"):
        await house.around(for_ever)(house.call(LONG_MS))


async def test_a_call_inside_another_ends_with_it(house: House) -> None:
    """Both are due at once, and each takes back what it asked for."""
    seen: list[str] = []
    call = house.call(5)
    inner = msgspec.structs.replace(call, id=new_call_id(call.started_ns))

    async def outer() -> None:
        try:
            await house.around(for_ever)(inner)
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    asyncio.get_running_loop().call_soon(stand_still, call.until_ns)
    with pytest.raises(TimedOut):
        await house.around(outer)(call)
    assert seen == ["CancelledError"], "there is nothing left to be done about it inside"
    assert cancels() == 0
    await asyncio.sleep(0.001)


def test_another_loop_has_its_own_alarm() -> None:
    """What was set in one that is closed rings nowhere."""
    deadline = Deadline()

    async def begun_and_gone() -> None:
        async with in_memory(waits) as runtime:
            here = House(deadline, await runtime.gate.decide(ME, "waits"))
            assert (await here.around(lambda: asyncio.sleep(0))(here.call(50))).ok

    async def late() -> float:
        async with in_memory(waits) as runtime:
            return await House(deadline, await runtime.gate.decide(ME, "waits")).late(100)

    asyncio.run(begun_and_gone())
    assert 0 <= asyncio.run(late()) < LATE_MS
