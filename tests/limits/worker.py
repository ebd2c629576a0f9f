"""A process of its own at a shared store: opens a gate, hears `go`, and tells what came of it."""

import asyncio
import sys
import time
from pathlib import Path

import orjson

from tests.limits.house import look, open_limited, outcome, put, send
from toolgate import tool
from toolgate.store import rates, redis


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def spend(given: dict[str, str], name: str, times: int) -> None:
    """So many calls at once; how many of them succeeded."""
    async with open_limited(
        Path(given["root"]), url=given["url"], lease=float(given["lease"])
    ) as gate:
        gate.add(look, put, send)
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        found = await asyncio.gather(*(outcome(gate, name) for _ in range(times)))
        told = {code: found.count(code) for code in set(found)}
        say(orjson.dumps(told).decode())
        await asyncio.to_thread(sys.stdin.readline)


async def press(given: dict[str, str], name: str, rate: int, seconds: int) -> None:
    """So many calls a second for so long; when those ran that passed, and when one was refused."""
    # A machine that is busy with other tests is no outage.
    rates._SECONDS = redis._SECONDS = 20.0  # pyright: ignore[reportPrivateUsage]
    passed, refused, calls = list[float](), list[float](), set[asyncio.Task[None]]()

    @tool(effect="pure", name=name)
    async def mark() -> None:
        """Note the time."""
        passed.append(time.time())

    async with open_limited(
        Path(given["root"]), url=given["url"], redis=given["redis"], tool=given["tool"]
    ) as gate:
        gate.add(mark, look)
        await outcome(gate, "look")
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)

        async def one() -> None:
            if await outcome(gate, name) == "rate_limited":
                refused.append(time.time())

        began = time.monotonic()
        for number in range(rate * seconds):
            await asyncio.sleep(max(began + number / rate - time.monotonic(), 0))
            call = asyncio.create_task(one())
            calls.add(call)
            call.add_done_callback(calls.discard)
        await asyncio.gather(*calls)
        say(orjson.dumps([passed, refused]).decode())


WORK = {"spend": spend, "press": press}
if __name__ == "__main__":
    work, given, name, *numbers = sys.argv[1:]
    asyncio.run(WORK[work](orjson.loads(given), name, *map(int, numbers)))
