"""A server that is told to end under load: the recorder outside says what really happened."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.cli.draining import in_state, laid_out, listens, serve
from tests.house import until
from tests.once.recorder import Recorder, recording
from tests.server.serving import Serving

ASKS = {"effect": "irreversible", "requires_approval": True}
PURE, OTHER = 30, 85


class Told(NamedTuple):
    """What a caller was answered; nothing where the wire broke."""

    key: str
    status: int
    body: Any


@pytest.fixture
def recorder(tmp_path: Path) -> Generator[Recorder]:
    with recording(tmp_path) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, recorder: Recorder) -> Path:
    return laid_out(tmp_path, recorder)


class Callers:
    """Any number of them at once, each with an idempotency key of its own."""

    def __init__(self, session: aiohttp.ClientSession, server: Serving) -> None:
        self._session = session
        self._url = f"http://127.0.0.1:{server.port}/v1/call"
        self.asked: list[asyncio.Task[Told]] = []

    def ask(self, tool: str, key: str, **more: str) -> None:
        self.asked.append(asyncio.create_task(self._one(tool, key, more)))

    async def _one(self, tool: str, key: str, more: dict[str, str]) -> Told:
        body = {"tool": tool, "args": {"key": key, **more}, "idempotency_key": key}
        try:
            async with self._session.post(self._url, json=body) as answer:
                return Told(key, answer.status, await answer.json())
        except aiohttp.ClientError:
            return Told(key, 0, None)


@asynccontextmanager
async def calling(server: Serving, key: str) -> AsyncGenerator[Callers]:
    headers = {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        yield Callers(session, server)


async def fill(callers: Callers, recorder: Recorder, root: Path) -> None:
    """So many calls that most of them still wait for their turn."""
    for number in range(PURE):
        callers.ask("look", f"look{number}")
    await until(lambda: len(recorder.lines()) == PURE)
    for number in range(OTHER):
        hold = "before" if number % 2 else "after"
        callers.ask("put", f"put{number}", hold=hold)
        callers.ask("pay", f"pay{number}", hold=hold)
    await until(lambda: in_state(root, "started") == 2 * OTHER)


@pytest.mark.req("S3", "V5")
async def test_two_hundred_calls_in_flight_are_answered_and_none_happens_twice(
    folder: Path, recorder: Recorder
) -> None:
    with serve(folder) as server:
        key = server.greeting["keys"]["agent"]
        async with calling(server, key) as callers:
            await fill(callers, recorder, folder)
            server.process.send_signal(signal.SIGTERM)
            await until(lambda: not listens(server.port))
            assert not any(one.done() for one in callers.asked), "they are waited for"
            assert server.process.poll() is None
            (folder / "go").touch()
            told = await asyncio.gather(*callers.asked)
        assert server.process.wait(40) == 0
        assert server.log == ""
    assert [one.status for one in told] == [200] * (PURE + 2 * OTHER)
    assert {one.body["status"] for one in told} == {"success"}
    counted = {name: recorder.counts(name) for name in ("look", "put", "pay")}
    assert [sum(one.values()) for one in counted.values()] == [PURE, OTHER, OTHER]
    assert {times for one in counted.values() for times in one.values()} == {1}
    numbers = {**recorder.numbers("look"), **recorder.numbers("put"), **recorder.numbers("pay")}
    assert {one.key: one.body["data"] for one in told} == numbers, "each has its own answer"
    assert (in_state(folder, "started"), in_state(folder, "succeeded")) == (0, 2 * OTHER)

    # Who was not sure asks the next server again, and hears the first answer.
    with serve(folder) as server:
        async with calling(server, key) as callers:
            callers.ask("pay", "pay1", hold="before")
            [again] = await asyncio.gather(*callers.asked)
    assert (again.body["cached"], again.body["data"]) == (True, numbers["pay1"])
    assert recorder.counts("pay")["pay1"] == 1


@pytest.mark.req("S3", "V5")
async def test_a_second_signal_ends_at_once_and_what_had_begun_is_not_repeated(
    folder: Path, recorder: Recorder
) -> None:
    with serve(folder) as server:
        key = server.greeting["keys"]["agent"]
        async with calling(server, key) as callers:
            callers.ask("pay", "paid", hold="after")
            callers.ask("block", "blocks")
            await until(lambda: len(recorder.lines()) == 1 and (folder / "blocks").exists())
            server.process.send_signal(signal.SIGTERM)
            await until(lambda: not listens(server.port))
            server.process.send_signal(signal.SIGTERM)
            # Long before the tools are over, which nobody tells to go on.
            assert await asyncio.to_thread(server.process.wait, 10) == 1
            told = await asyncio.gather(*callers.asked)
        assert [one.body["status"] for one in told] == ["unknown"] * 2, "and their callers hear it"
        assert "2 requests were not over" in server.log
    (folder / "go").touch()
    with serve(folder) as server:
        async with calling(server, key) as callers:
            callers.ask("pay", "paid", hold="after")
            [again] = await asyncio.gather(*callers.asked)
    assert (again.body["status"], again.body["error"]["code"]) == ("unknown", "outcome_unknown")
    assert recorder.counts("pay") == {"paid": 1}
    assert in_state(folder, "unknown") == 2


@pytest.mark.req("S3")
async def test_who_sends_one_request_after_the_other_is_answered_to_the_last(
    folder: Path, recorder: Recorder
) -> None:
    (folder / "go").touch()
    with serve(folder) as server:
        key = server.greeting["keys"]["agent"]
        clients = [Busy(server.port, key, number) for number in range(16)]
        busy = [asyncio.create_task(one.work()) for one in clients]
        await until(lambda: all(one.answered > 3 for one in clients))
        server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*busy)
        assert await asyncio.to_thread(server.process.wait, 40) == 0
    assert [one.sent - one.answered for one in clients] == [0] * 16
    assert sum(recorder.counts("pay").values()) == sum(one.answered for one in clients)


class Busy:
    """One connection, and a request on it as soon as there was an answer, until it is closed."""

    def __init__(self, port: int, key: str, number: int) -> None:
        self._port, self._key, self._number = port, key, number
        self.sent = self.answered = 0

    async def work(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            args = {"key": f"{self._number}-{self.sent}", "hold": ""}
            body = json.dumps({"tool": "pay", "args": args}).encode()
            head = (
                f"POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
                f"Authorization: Bearer {self._key}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            self.sent += 1
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            [length] = re.findall(rb"content-length: (\d+)", answer)
            await reader.readexactly(int(length))
            self.answered += 1
            if b"connection: close" in answer:
                writer.close()
                return


@pytest.mark.req("S3", "S6")
async def test_who_waits_for_a_person_is_told_where_to_ask_again(folder: Path) -> None:
    tools = {"tools": [{"name": "careful", "config": {"builtin": "timestamp"}, **ASKS}]}
    (folder / "tools" / "careful.json").write_text(json.dumps(tools), "utf-8")
    with serve(folder) as server:
        key = server.greeting["keys"]["agent"]
        body = {"tool": "careful", "wait_s": 600}
        waiting = asyncio.create_task(
            asyncio.to_thread(server.ask, "POST", "/v1/call", key=key, body=body)
        )
        await until(lambda: bool(server.get("/v1/approvals", key).body["approvals"]))
        server.process.send_signal(signal.SIGTERM)
        answer = await waiting
        assert (answer.status, answer.body["status"]) == (200, "pending_approval")
        assert await asyncio.to_thread(server.process.wait, 40) == 0


@pytest.mark.req("S3")
async def test_calls_get_as_long_as_the_settings_say(folder: Path, recorder: Recorder) -> None:
    (folder / "toolgate.toml").write_text("[server]\ndrain = 0.2\n", "utf-8")
    with serve(folder) as server:
        async with calling(server, server.greeting["keys"]["agent"]) as callers:
            callers.ask("pay", "paid", hold="after")
            await until(lambda: len(recorder.lines()) == 1)
            server.process.send_signal(signal.SIGTERM)
            [told] = await asyncio.gather(*callers.asked)
        assert told.body["status"] == "unknown"
        assert await asyncio.to_thread(server.process.wait, 40) == 1
