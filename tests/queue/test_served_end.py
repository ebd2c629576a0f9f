"""A server ends while its own worker runs queued calls: they have the queue's time, and stay."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import until
from tests.queue.yard import Yard, over
from tests.server.serving import Answer, Serving

pytestmark = [pytest.mark.req("P6", "S3"), pytest.mark.timeout(120)]
UNGUARDED = (
    "from toolgate.runtime import Runtime; "
    "Runtime.finish = lambda house, patience: house._executor.close(patience); "
)


def place(root: Path, drain: float) -> Yard:
    yard = Yard(root, "", queue=f"drain = {drain}")
    yard.change("[queue]\n", "[server]\ndrain = 0.3\n\n[queue]\n")
    return yard


async def begun(server: Serving, yard: Yard) -> "asyncio.Task[Answer]":
    """A call that a worker has begun, and whoever waits for it."""
    key = server.greeting["keys"]["agent"]
    call = asyncio.create_task(asyncio.to_thread(server.call, "watch", {"text": "w"}, key=key))
    await until(lambda: yard.marks() == {"began-w": 1})
    return call


async def ended(yard: Yard, call_id: str) -> dict[str, Any]:
    """How it stands once a house has been opened there again."""
    async with yard.gate() as gate:
        (found,) = await over(gate, [call_id])
        return orjson.loads(found.output)


async def test_what_is_cut_off_is_queued_again_and_its_caller_is_told_the_id(
    tmp_path: Path,
) -> None:
    with place(tmp_path, drain=0.1) as yard:
        with Serving(yard.root) as server:
            call = await begun(server, yard)
            server.process.terminate()
            told = (await call).body
            assert await asyncio.to_thread(server.process.wait, 40) == 1
        assert (told["status"], told["error"]["code"]) == ("queued", "queued")
        yard.go()
        assert (await ended(yard, told["call_id"]))["data"] == {"marked": "w"}
        assert yard.marks() == {"began-w": 2, "w": 1}


async def test_what_comes_to_its_end_in_the_queues_own_time_is_not_cut_off(
    tmp_path: Path,
) -> None:
    with place(tmp_path, drain=60) as yard:
        with Serving(yard.root) as server:
            call = await begun(server, yard)
            server.process.terminate()
            # Nobody is waited for any more, and the call goes on.
            told = (await call).body
            assert told["status"] == "queued"
            yard.go()
            assert await asyncio.to_thread(server.process.wait, 40) == 1
        assert (await ended(yard, told["call_id"]))["data"] == {"marked": "w"}
        assert yard.marks() == {"began-w": 1, "w": 1}


async def test_cut_off_with_the_calls_of_the_doors_it_would_be_lost(tmp_path: Path) -> None:
    with place(tmp_path, drain=60) as yard:
        with Serving(yard.root, before=UNGUARDED) as server:
            call = await begun(server, yard)
            server.process.terminate()
            told = (await call).body
            assert await asyncio.to_thread(server.process.wait, 40) == 1
        yard.go()
        assert (await ended(yard, told["call_id"]))["error"]["code"] == "timed_out"
        assert yard.marks() == {"began-w": 1}
