"""One client at the end of two pipes, in this process: what it listens to ends with it."""

import asyncio
import gc
from typing import Any

import orjson
import pytest

from tests.house import until
from tests.mcp.house import LEGACY, META, House
from toolgate.server.auth import caller_of
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.changes import Changes
from toolgate.server.mcp.lines import Lines

pytestmark = pytest.mark.req("V1")


class Pipe:
    """Both ends of it."""

    def __init__(self, house: House) -> None:
        [key] = [one for one in house.gate.tenancy.world.keys.values() if one.agent == "robot"]
        self.answering = Answering(house.gate)
        self.heard: list[Any] = []
        self.reader = asyncio.StreamReader()
        lines = Lines(self.answering, key, caller_of(key), self._write)
        self.running = asyncio.create_task(lines.run(self.reader))

    def _write(self, line: bytes) -> None:
        self.heard.append(orjson.loads(line))

    def say(self, method: str, params: Any, id_: Any = None) -> None:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        self.reader.feed_data(orjson.dumps(told | ({} if id_ is None else {"id": id_})) + b"\n")

    @property
    def listeners(self) -> int:
        return len(self.answering.changes._listeners)  # pyright: ignore[reportPrivateUsage]

    async def close(self) -> None:
        self.reader.feed_eof()
        await self.running
        assert self.listeners == 0
        await self.answering.close(1)


async def test_two_that_listen_on_one_pipe_end_each_by_itself(house: House) -> None:
    pipe, failed = Pipe(house), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: failed.append(told))
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": META}
    for id_ in ("one", "two"):
        pipe.say("subscriptions/listen", wanted, id_)
    await until(lambda: pipe.listeners == 2)
    for number, id_ in enumerate(("one", "two"), 1):
        pipe.say("notifications/cancelled", {"requestId": id_})
        await until(lambda number=number: pipe.listeners == 2 - number)
    await pipe.close()
    # A task tells of its failure when it is collected.
    gc.collect()
    await asyncio.sleep(0)
    assert failed == []


async def test_who_is_refused_can_ask_again_under_the_same_id(house: House) -> None:
    pipe = Pipe(house)
    for number in (1, 2):
        pipe.say("subscriptions/listen", {"notifications": 7, "_meta": META}, "one")
        await until(lambda number=number: len(pipe.heard) == number)
        await asyncio.sleep(0)
    assert [one["error"]["code"] for one in pipe.heard] == [-32602, -32602]
    await pipe.close()


@pytest.mark.parametrize("id_", [0, "", 1])
async def test_an_id_can_be_used_again_once_it_is_answered(house: House, id_: Any) -> None:
    pipe = Pipe(house)
    for number in (1, 2):
        pipe.say("tools/list", {"_meta": META}, id_)
        await until(lambda number=number: len(pipe.heard) == number)
        await asyncio.sleep(0)
    assert ["result" in one for one in pipe.heard] == [True, True]
    await pipe.close()


async def test_who_begins_again_and_again_listens_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen = Changes.listen

    async def later(self: Changes, *given: Any) -> Any:
        """All of them are under way before the first one listens."""
        await asyncio.sleep(0)
        return await listen(self, *given)

    monkeypatch.setattr(Changes, "listen", later)
    pipe = Pipe(house)
    params: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
    for id_ in range(20):
        pipe.say("initialize", params, id_)
    await until(lambda: len(pipe.heard) == 20)
    await until(lambda: pipe.listeners == 1)
    pipe.say("ping", {}, "last")
    await until(lambda: len(pipe.heard) == 21)
    assert (pipe.heard[-1]["result"], pipe.listeners) == ({}, 1)
    await pipe.close()
