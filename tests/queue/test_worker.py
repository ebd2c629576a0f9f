"""A worker over the queue in memory: what it has, and what it loses."""

import asyncio
from collections.abc import Collection, Sequence

import msgspec
import pytest

from tests.house import until
from tests.queue.stand import LONG, item
from toolgate.call import Output
from toolgate.caller import Caller
from toolgate.queue.message import VERSION, Letter, Request, Result, written
from toolgate.queue.queue import NOBODY, Stage, Taken
from toolgate.testing.queue import MemoryQueue
from toolgate.worker import worker as module
from toolgate.worker.worker import Terms, Worker

pytestmark = pytest.mark.req("P6", "S2")


class Bench:
    """A worker that takes what it is told to; each of its attempts waits to be let go."""

    def __init__(self) -> None:
        self.queue = MemoryQueue()
        self.attempts: list[asyncio.Event] = []
        self.told: list[str] = []
        self.claims: asyncio.Queue[str] = asyncio.Queue()
        terms = Terms(concurrency=8, lease=LONG, most_attempts=5)
        self.worker = Worker(
            self.queue, self, self._deliver, terms, expire=self._expire, tell=self._tell
        )

    async def take(
        self, room: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        del room, but
        return await self.queue.claim([await self.claims.get()], lease)

    async def begin(self, name: str) -> None:
        before = len(self.attempts)
        self.claims.put_nowait(name)
        await until(lambda: len(self.attempts) > before)

    async def _deliver(self, request: Request) -> Output:
        mine = asyncio.Event()
        self.attempts.append(mine)
        number = len(self.attempts)
        await mine.wait()
        return Output(status="success", data=number, call_id=request.id)

    async def _expire(self, request: Request) -> None:
        raise AssertionError(request)

    async def _tell(self, result: Result, letter: Letter | None) -> None:
        assert letter is None
        self.told.append(str(result.output.data))


async def test_a_call_that_is_lost_and_taken_again_here_is_held_until_its_last_attempt_ends() -> (
    None
):
    bench = Bench()
    request = Request(
        version=VERSION, id="a", tool="pay", args={}, caller=Caller(tenant="acme", agent="billing")
    )
    await bench.queue.put(msgspec.structs.replace(item("a"), message=written(request)))
    working = asyncio.create_task(bench.worker.run())
    await bench.begin("a")
    # As if this process had stood still: somebody swept it, and it came here again.
    bench.queue.rows["a"].due_ns = 0
    await bench.queue.sweep()
    await bench.begin("a")
    assert bench.worker.busy == 2
    bench.attempts[0].set()
    await until(lambda: bench.worker.busy == 1)
    assert bench.told == []
    assert bench.queue.rows["a"].stage is Stage.TAKEN
    bench.attempts[1].set()
    await until(lambda: not bench.worker.busy)
    assert bench.told == ["2"]
    assert bench.queue.rows["a"].stage is Stage.DONE
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


class Full(Bench):
    """All of its places are taken at once; one is free again while others are looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.rooms: list[int] = []

    async def take(
        self, room: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        if but:
            await until(lambda: len(self.attempts) == 8)
            self.attempts[0].set()
            await until(lambda: self.worker.busy == 7)
            return []
        self.rooms.append(room)
        await asyncio.sleep(0)
        return await self.queue.take(room, lease)


async def test_a_place_that_is_free_while_others_are_looked_for_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever misses it waits for the next look.
    monkeypatch.setattr(module, "_LOOK_NS", 3_600 * 10**9)
    bench = Full()
    for number in range(9):
        request = Request(
            version=VERSION, id=f"a{number}", tool="pay", args={}, caller=Caller(tenant="acme")
        )
        await bench.queue.put(msgspec.structs.replace(item(request.id), message=written(request)))
    working = asyncio.create_task(bench.worker.run())
    await until(lambda: len(bench.attempts) == 9)
    assert bench.rooms[:2] == [8, 1]
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
