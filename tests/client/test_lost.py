"""A connection that breaks: what was asked for is done once, and its answer comes all the same."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from tests.client.houses import House, Served
from tests.house import until
from tests.once.wire import Wire as Line
from tests.once.wire import wired
from toolgate import Toolgate, Turn
from toolgate.client.remote import Remote, key_for
from toolgate.errors import ServerUnreachable

pytestmark = pytest.mark.req("V2", "S2")
Ask = Callable[[Remote, str], Awaitable[Any]]


async def call(gate: Remote, text: str) -> Any:
    return await gate.call("write_line", {"text": text})


async def call_in_a_turn(gate: Remote, text: str) -> Any:
    return await gate.call("write_line", {"text": text}, turn=Turn(group=f"t-{text}"))


async def call_with_a_key(gate: Remote, text: str) -> Any:
    return await gate.call("write_line", {"text": text}, idempotency_key=text)


async def batch(gate: Remote, text: str) -> Any:
    return await gate.batch([{"tool": "write_line", "args": {"text": text}}])


async def chain(gate: Remote, text: str) -> Any:
    return await gate.chain([{"tool": "write_line", "args": {"text": text}}])


async def said(gate: Remote, text: str) -> Any:
    message = f'{{"tool_name": "write_line", "tool_args": {{"text": "{text}"}}}}'
    [reply] = await gate.toolbox().run(message)
    assert text in reply["content"]
    return None


@pytest.fixture
async def line(served: Served) -> AsyncGenerator[Line]:
    async with wired(served.server.port) as line:
        yield line


@pytest.fixture
async def gate(served: Served, line: Line) -> AsyncGenerator[Remote]:
    async with Toolgate.connect(f"http://127.0.0.1:{line.port}", served.keys.agent) as gate:
        yield gate


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "not heard"])
@pytest.mark.parametrize(
    "ask", [call, call_in_a_turn, call_with_a_key, batch, chain, said], ids=lambda ask: ask.__name__
)
async def test_what_was_lost_on_the_way_is_done_once(
    remote: House, line: Line, gate: Remote, ask: Ask, *, heard: bool
) -> None:
    text = secrets.token_hex(8)
    line.arm(1, heard=heard)
    done = await ask(gate, text)
    assert line.broke
    assert done is None or done.ok
    assert remote.lines(text) == [text]


def _no_key(_turn: Turn | None) -> None:
    """The guard, switched off."""


async def test_without_a_name_for_the_call_it_would_be_done_twice(
    remote: House, line: Line, gate: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.client.remote.key_for", _no_key)
    text = secrets.token_hex(8)
    line.arm(1, heard=True)
    await call(gate, text)
    assert remote.lines(text) == [text, text], "what the key is for"


@pytest.mark.parametrize("together", [False, True], ids=["one call", "a batch"])
async def test_a_call_that_still_runs_is_waited_for(
    remote: House, line: Line, gate: Remote, *, together: bool
) -> None:
    text = secrets.token_hex(8)
    line.arm(1, heard=True)
    asked: dict[str, Any] = {"tool": "wait_for_go", "args": {"text": text}}
    run = gate.batch([asked]) if together else gate.call(asked["tool"], asked["args"])
    running = asyncio.create_task(run)
    await until(lambda: remote.lines(text) != [])
    remote.book.with_name(f"go-{text}").touch()
    assert (await running).ok
    assert remote.lines(text) == [text]


async def test_taking_back_is_done_once(remote: House, line: Line, gate: Remote) -> None:
    text = secrets.token_hex(8)
    output = await call(gate, text)
    line.arm(1, heard=True)
    report = await gate.undo(call_id=output.call_id)
    assert line.broke
    assert report.ok
    assert remote.lines(text) == [text, f"-{text}"]


async def test_a_question_is_asked_again(line: Line, gate: Remote) -> None:
    line.arm(1, heard=True)
    assert await gate.discover()
    assert line.broke


async def test_where_nobody_answers_the_key_is_told_that_the_call_goes_on_by(
    served: Served, remote: House
) -> None:
    text = secrets.token_hex(8)
    async with wired(served.server.port) as line:
        url = f"http://127.0.0.1:{line.port}"
        async with Toolgate.connect(url, served.keys.agent, timeout=1.0) as gate:
            with pytest.raises(ServerUnreachable, match="may have reached it") as lost:
                await gate.call("wait_for_go", {"text": text})
    remote.book.with_name(f"go-{text}").touch()
    key = lost.value.details["idempotency_key"]
    asked: dict[str, Any] = {"idempotency_key": key, "wait_s": 20}
    output = await remote.gate.call("wait_for_go", {"text": text}, **asked)
    assert (output.ok, output.cached) == (True, True)
    assert remote.lines(text) == [text]


def test_a_call_in_a_turn_gets_no_key_of_its_own() -> None:
    assert key_for(Turn(group="t-1")) is None
    assert key_for(None) != key_for(None)
