"""Whatever a server does wrong is a clear error, in time, and the next call is served."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.upstreams.bare import Bare, address, program
from tests.upstreams.misbehaving import ANSWERS, LINES, Server, serving
from toolgate.errors import ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.upstreams.connected import Connected

OK = "ok"
NO = '{"code": -32601, "message": "This client does not take that request."}'
# By fault: the text of the result, or the code of the error.
PROGRAM = {
    "crash": "execution_failed",
    "half a line": "execution_failed",
    "closed output": "execution_failed",
    "endless line": "execution_failed",
    "bad utf-8": "timed_out",
    "only noise": "execution_failed",
    "noise first": OK,
    "no answer": "timed_out",
    "wrong id": "timed_out",
    "text id": "timed_out",
    "twice": OK,
    "a list": "timed_out",
    "no result": "execution_failed",
    "both": "",
    "odd error": "execution_failed",
    "internal error": "execution_failed",
    "invalid params": "tool_error",
    "storm": OK,
    "odd notes": OK,
    "empty resource": "<resource>",
    "stderr flood": OK,
    "asks sampling": NO,
    "asks roots": NO,
    "asks elicitation": NO,
    "asks ping": "{}",
}
ADDRESS = {
    "hangs up": "execution_failed",
    "half a head": "execution_failed",
    "half a body": "execution_failed",
    "no answer": "timed_out",
    "no HTTP": "execution_failed",
    "no JSON": "execution_failed",
    "html": "execution_failed",
    "wrong id": "execution_failed",
    "a list": "execution_failed",
    "no result": "execution_failed",
    "empty resource": "<resource>",
    "accepted": "execution_failed",
    "status 500": "execution_failed",
    "status 401": "provider_unavailable",
    "status 429": "rate_limited",
    "elsewhere": "provider_unavailable",
    "half an address": "provider_unavailable",
    "internal error": "execution_failed",
    "invalid params": "tool_error",
    "compressed": "execution_failed",
    "flood": "execution_failed",
    "long head": "execution_failed",
    "stream ends": "execution_failed",
    "stream breaks off": "execution_failed",
    "stream of noise": OK,
    "stream twice": OK,
    "stream storm": OK,
}
# Those that wait get little time; those that write much get enough.
SHORT = frozenset({"bad utf-8", "no answer", "wrong id", "text id", "a list"})


async def outcome(upstream: Connected, tool: str) -> str:
    """The text of its result, or the code of its error; more than its time it cannot take."""
    seconds = 0.1 if tool in SHORT else 10.0
    try:
        async with asyncio.timeout(seconds + 10):
            result = await upstream.call(tool, {}, seconds=seconds)
    except ToolgateError as error:
        return error.code
    return "".join(block.get("text", f"<{block['type']}>") for block in result.get("content", []))


async def healed(upstream: Connected) -> str:
    """A call that works; a server that has to begin anew is waited for."""
    async with asyncio.timeout(20):
        while (said := await outcome(upstream, "ok")) == "provider_unavailable":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return said


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncGenerator[Connected]:
    upstream = program(sandbox=Bare())
    yield upstream
    await upstream.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncGenerator[tuple[Connected, Server]]:
    async with serving() as server:
        client = HttpClient(Guard())
        upstream = address(server.port, client)
        yield upstream, server
        await upstream.close()
        await client.close()


def test_every_fault_has_a_row() -> None:
    assert PROGRAM.keys() == LINES.keys()
    assert ADDRESS.keys() == ANSWERS.keys()
    assert len(PROGRAM.keys() | ADDRESS.keys()) > 30


@pytest.mark.req("P2")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fault", PROGRAM)
async def test_a_program_that_misbehaves_fails_one_call_at_most(
    fault: str, running: Connected
) -> None:
    assert await healed(running) == OK
    assert await outcome(running, fault) == PROGRAM[fault]
    assert await healed(running) == OK


@pytest.mark.req("P2")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fault", ADDRESS)
async def test_a_server_that_misbehaves_fails_one_call_at_most(
    fault: str, served: tuple[Connected, Server]
) -> None:
    upstream, _ = served
    assert await healed(upstream) == OK
    assert await outcome(upstream, fault) == ADDRESS[fault]
    assert await healed(upstream) == OK
