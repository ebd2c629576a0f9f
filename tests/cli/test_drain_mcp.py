"""A server that is told to end while MCP's clients wait, on both revisions and by every way."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.cli.draining import in_state, laid_out, listens, serve
from tests.house import until
from tests.mcp.house import LEGACY, META, MODERN
from tests.once.recorder import Recorder, recording
from tests.server.serving import Serving

PURE, OTHER = 30, 85
JSON, BOTH = "application/json", "application/json, text/event-stream"
# Revision, what the client takes, and whether it wants to hear how far a call has come.
WAYS = ((MODERN, BOTH, False), (MODERN, BOTH, True), (LEGACY, BOTH, False), (LEGACY, JSON, False))


CAREFUL = """
tools:
  - name: careful
    effect: irreversible
    requires_confirmation: true
    config: {module: draining, function: pay}
    input_schema: {type: object, properties: {key: {type: string}, hold: {type: string}}}
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Generator[Recorder]:
    with recording(tmp_path) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, recorder: Recorder) -> Path:
    return laid_out(tmp_path, recorder)


class Clients:
    """Any number of calls at once, none with a key of its own: who hears nothing calls again."""

    def __init__(self, http: aiohttp.ClientSession, server: Serving) -> None:
        self._http = http
        self._url = f"http://127.0.0.1:{server.port}/mcp"
        self._ways = cycle(WAYS)
        self._session = ""
        self.asked: dict[str, asyncio.Task[Any]] = {}
        self.listening: list[asyncio.Task[Any]] = []
        # How many messages came on streams.
        self.heard = 0

    async def begin(self, capabilities: dict[str, Any] | None = None) -> None:
        params = {"protocolVersion": LEGACY, "capabilities": capabilities or {}, "clientInfo": {}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        async with self._http.post(self._url, json=body, headers={"Accept": BOTH}) as answer:
            self._session = answer.headers["Mcp-Session-Id"]

    def listen(self) -> None:
        """On both revisions; nobody is told anything."""
        wanted = {"notifications": {"toolsListChanged": True}}
        older = self._http.get(self._url, headers=self._headers(LEGACY, "text/event-stream"))
        newer = self._sent("subscriptions/listen", wanted, "heard", (MODERN, BOTH, False))
        self.listening = [asyncio.create_task(self._read(one)) for one in (older, newer)]

    def call(self, tool: str, key: str, *, way: Any = None, meta: Any = None, **more: str) -> None:
        params = {"name": tool, "arguments": {"key": key, **more}, "_meta": meta or {}}
        sent = self._sent("tools/call", params, key, way or next(self._ways))
        self.asked[key] = asyncio.create_task(self._read(sent))

    def _sent(self, method: str, params: dict[str, Any], id_: str, way: Any) -> Any:
        version, accept, wants = way
        meta: dict[str, Any] = {**params.get("_meta", {})}
        if wants:
            meta["progressToken"] = id_
        if version == MODERN:
            meta |= META
        body = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params | {"_meta": meta}}
        headers = self._headers(version, accept) | {"Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        return self._http.post(self._url, data=orjson.dumps(body), headers=headers)

    def _headers(self, version: str, accept: str) -> dict[str, str]:
        whose = {} if version == MODERN else {"Mcp-Session-Id": self._session}
        return {"MCP-Protocol-Version": version, "Accept": accept} | whose

    async def _read(self, sent: Any) -> list[Any]:
        """Each message that came, the last one last."""
        async with sent as answer:
            assert answer.status == 200
            if answer.content_type == JSON:
                return [await answer.json()]
            said: list[Any] = []
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    said.append(orjson.loads(line.removeprefix(b"data: ")))
                    self.heard += 1
            return said


@asynccontextmanager
async def clients(server: Serving) -> AsyncGenerator[Clients]:
    headers = {"Authorization": f"Bearer {server.greeting['keys']['agent']}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as http:
        yield Clients(http, server)


@pytest.mark.req("S3", "V1")
async def test_two_hundred_calls_of_both_revisions_are_answered_and_none_happens_twice(
    folder: Path, recorder: Recorder
) -> None:
    with serve(folder) as server:
        async with clients(server) as all_:
            await all_.begin()
            all_.listen()
            for number in range(PURE):
                all_.call("look", f"look{number}")
            await until(lambda: len(recorder.lines()) == PURE)
            for number in range(OTHER):
                hold = "before" if number % 2 else "after"
                all_.call("put", f"put{number}", hold=hold)
                all_.call("pay", f"pay{number}", hold=hold)
            await until(lambda: in_state(folder, "started") == 2 * OTHER)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*all_.listening)
            await until(lambda: not listens(server.port))
            assert not any(one.done() for one in all_.asked.values()), "they are waited for"
            (folder / "go").touch()
            told = dict(zip(all_.asked, await asyncio.gather(*all_.asked.values()), strict=True))
        assert server.process.wait(40) == 0
        assert server.log == ""
    assert [key for key, said in told.items() if not said or "result" not in said[-1]] == []
    answers = {key: said[-1] for key, said in told.items()}
    assert {key: one["id"] for key, one in answers.items()} == {key: key for key in answers}
    assert not any(one["result"]["isError"] for one in answers.values())
    numbers = {**recorder.numbers("look"), **recorder.numbers("put"), **recorder.numbers("pay")}
    shown = {key: int(one["result"]["content"][0]["text"]) for key, one in answers.items()}
    assert shown == numbers, "each has its own answer"
    counted = [recorder.counts(name) for name in ("look", "put", "pay")]
    assert [sum(one.values()) for one in counted] == [PURE, OTHER, OTHER]
    assert (in_state(folder, "started"), in_state(folder, "succeeded")) == (0, 2 * OTHER)


@pytest.mark.req("S3", "V1")
async def test_who_is_asked_something_when_the_server_ends_hears_that_it_does_not_wait(
    folder: Path,
) -> None:
    (folder / "tools" / "careful.yaml").write_text(CAREFUL, "utf-8")
    with serve(folder) as server:
        admin = server.greeting["keys"]["admin"]
        async with clients(server) as all_:
            await all_.begin({"elicitation": {}})
            all_.call("careful", "asked", hold="", way=(LEGACY, BOTH, False))
            await until(lambda: bool(server.get("/v1/approvals", admin).body["approvals"]))
            await until(lambda: bool(all_.heard))
            server.process.send_signal(signal.SIGTERM)
            said = await all_.asked["asked"]
        assert await asyncio.to_thread(server.process.wait, 40) == 0
    assert said[0]["method"] == "elicitation/create"
    assert "about to end" in said[-1]["error"]["message"]
    assert in_state(folder, "started") == in_state(folder, "succeeded") == 0


@pytest.mark.req("S3", "S6", "V1")
async def test_who_waits_for_a_person_is_told_where_to_ask_again(folder: Path) -> None:
    (folder / "tools" / "careful.yaml").write_text(CAREFUL, "utf-8")
    with serve(folder) as server:
        admin = server.greeting["keys"]["admin"]
        async with clients(server) as all_:
            await all_.begin()
            for number, way in enumerate(WAYS):
                key, meta = f"waits{number}", {"toolgate/waitSeconds": 600}
                all_.call("careful", key, hold="", way=way, meta=meta)
            await until(
                lambda: len(server.get("/v1/approvals", admin).body["approvals"]) == len(WAYS)
            )
            server.process.send_signal(signal.SIGTERM)
            told = await asyncio.gather(*all_.asked.values())
        assert await asyncio.to_thread(server.process.wait, 40) == 0
    status = [said[-1]["result"]["_meta"]["toolgate/status"] for said in told]
    assert status == ["pending_approval"] * len(WAYS)
