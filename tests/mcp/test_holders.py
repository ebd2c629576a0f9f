"""Streams end with what their key opens: revoked on another node, or over, while a call runs on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest

from tests.house import until
from tests.mcp.house import META, MODERN, House, opened
from tests.mcp.older import Older
from toolgate import Call, Toolgate, clock, tool
from toolgate.server.mcp import holders
from toolgate.settings.settings import Settings
from toolgate.tenancy.keys import FreshKey, Role, not_valid

pytestmark = pytest.mark.req("V1", "V3")
KINDS = {"listen", "call", "older call", "older beside"}


class Reader(NamedTuple):
    task: "asyncio.Task[None]"
    heard: list[Any]


class Streams(NamedTuple):
    """Four streams of one key that are open, and the calls behind two of them."""

    house: House
    key: FreshKey
    readers: dict[str, Reader]
    release: asyncio.Event
    ended: list[str]

    def over(self) -> set[str]:
        return {name for name, one in self.readers.items() if one.task.done()}


def read(answer: Any) -> Reader:
    heard: list[Any] = []

    async def reading() -> None:
        async for line in answer.content:
            if line.startswith(b"data: {"):
                heard.append(orjson.loads(line[6:]))  # noqa: PERF401  each when it comes

    return Reader(asyncio.create_task(reading()), heard)


@asynccontextmanager
async def streaming(root: Path, expires: str = "") -> AsyncGenerator[Streams]:
    release, ended = asyncio.Event(), list[str]()

    @tool(effect="irreversible")
    async def slow(call: Call) -> str:
        """Say something, and take as long as it takes."""
        call.progress(1, 2, "half")
        await release.wait()
        ended.append("slow")
        return "done"

    async with opened(root) as house, aiohttp.ClientSession() as http:
        house.gate.add(slow)
        key = await house.gate.tenancy.add_key(
            Role.AGENT, tenant="acme", agent="robot", expires=expires
        )

        async def newer(method: str, params: dict[str, Any], **more: Any) -> Any:
            body = {"jsonrpc": "2.0", "id": method, "method": method}
            raw = orjson.dumps(body | {"params": params | {"_meta": META | more}})
            headers = {
                "Authorization": f"Bearer {key.secret}",
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": method,
                "Accept": "text/event-stream, application/json",
            }
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
            return await http.post(house.url, data=raw, headers=headers)

        older = await Older(house, http, key.secret).begin()
        wanted = {"notifications": {"toolsListChanged": True}}
        called: dict[str, Any] = {"name": "slow", "_meta": {"progressToken": 1}}
        streams = {
            "listen": await newer("subscriptions/listen", wanted),
            "call": await newer("tools/call", {"name": "slow"}, progressToken=1),
            "older call": await older.post("tools/call", called),
            "older beside": await older.get(),
        }
        assert {one.status for one in streams.values()} == {200}
        readers = {name: read(one) for name, one in streams.items()}
        try:
            told = [readers[name].heard for name in ("listen", "call", "older call")]
            await until(lambda: all(told))
            yield Streams(house, key, readers, release, ended)
        finally:
            release.set()
            for one in readers.values():
                one.task.cancel()
            await asyncio.wait([one.task for one in readers.values()])


async def revoked_elsewhere(root: Path, key: FreshKey) -> None:
    async with Toolgate.open(Settings(root=root)) as other:
        await other.tenancy.by("test").revoke_key(key.key.id)


async def test_all_streams_of_a_revoked_key_end_and_its_calls_run_on(tmp_path: Path) -> None:
    async with streaming(tmp_path) as one:
        assert one.over() == set()
        await revoked_elsewhere(tmp_path, one.key)
        await until(lambda: one.over() == KINDS)
        assert one.ended == [], "what was begun is not over"
        last = one.readers["call"].heard[-1]
        assert last["error"]["message"] == not_valid().message
        one.release.set()
        await until(lambda: one.ended == ["slow", "slow"])


async def test_without_the_look_a_call_of_a_revoked_key_would_be_heard_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    looks: list[str] = []

    def believed(key: Any, _world: Any) -> bool:
        looks.append(key.id)
        return True

    monkeypatch.setattr(holders, "stands", believed)
    monkeypatch.setattr(holders, "EVERY", 0.05)
    async with streaming(tmp_path) as one:
        await revoked_elsewhere(tmp_path, one.key)
        await until(lambda: one.key.key.digest not in one.house.gate.tenancy.world.keys)
        looks.clear()
        await until(lambda: len(looks) > 8)
        assert not one.over() & {"call", "older call"}
        one.release.set()
        await until(lambda: {"call", "older call"} <= one.over())
        assert "result" in one.readers["call"].heard[-1]


async def test_streams_end_when_the_time_of_their_key_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with streaming(tmp_path, expires="1h") as one:
        now = clock.unix_ns
        monkeypatch.setattr(clock, "unix_ns", lambda: now() + 2 * 3_600 * 10**9)
        await until(lambda: one.over() == KINDS)
        monkeypatch.undo()
