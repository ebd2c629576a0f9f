"""Whose a server's questions and log lines are: one caller's, or nobody's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from tests.house import until
from tests.upstreams.bare import Bare, address, program
from tests.upstreams.misbehaving import Json, Server, Writer, event, note, serving
from toolgate.asked import Question
from toolgate.errors import InputNeeded
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.upstreams.beside import Beside
from toolgate.upstreams.callers import Callers
from toolgate.upstreams.connected import Connected

pytestmark = pytest.mark.req("P2")
DECLINED = '{"action": "decline"}'
ACCEPTED = '{"action": "accept", "content": {}}'


class Caller:
    """Somebody at the other end, who says yes to whatever is asked."""

    wants_progress = True
    log_level = "debug"

    def __init__(self, *, later: bool = False) -> None:
        self.capabilities: dict[str, Any] = {"elicitation": {}}
        self.heard: list[Any] = []
        self.later = later

    def progress(self, done: float, total: float | None, message: str) -> None:
        self.heard.append(done)

    def log(self, level: str, message: Any) -> None:
        self.heard.append(message)

    def queued(self, call_id: str) -> None:
        self.heard.append(call_id)

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        self.heard += [one.params["message"] for one in questions.values()]
        if self.later:
            raise InputNeeded(dict(questions))
        return {name: {"action": "accept", "content": {}} for name in questions}


async def pay(upstream: Connected, account: str, caller: Caller | None) -> str:
    result = await upstream.call("pay", {"account": account}, seconds=10, line=caller)
    return str(result["content"][0]["text"])


@pytest.fixture
async def running() -> AsyncGenerator[Connected]:
    upstream = program(sandbox=Bare(), elicitation=True, script="asking")
    await upstream.open(20)
    yield upstream
    await upstream.close()


def held(upstream: Connected, caller: Caller | None) -> "asyncio.Task[Json]":
    return asyncio.create_task(upstream.call("hold", {}, seconds=30, line=caller))


async def test_who_waits_for_something_else_hears_nothing_of_a_call(running: Connected) -> None:
    other = Caller()
    holding = held(running, other)
    await asyncio.sleep(0)
    assert await pay(running, "one", None) == DECLINED
    assert await pay(running, "two", Caller()) == DECLINED
    await running.call("let go", {}, seconds=10)
    await holding
    assert other.heard == []
    # The control: whoever is alone with the server hears it, and is asked.
    assert await pay(running, "three", other) == ACCEPTED
    assert other.heard == ["paying from three", "Pay from three?"]


async def test_what_was_given_up_may_still_ask_and_nobody_else_answers(running: Connected) -> None:
    holding = held(running, Caller())
    # It has been sent when the next one is answered.
    await asyncio.gather(running.call("ok", {}, seconds=10), return_exceptions=True)
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    other = Caller()
    assert await pay(running, "one", other) == DECLINED
    assert other.heard == []
    # The control: once its server has answered it, late as it is, there is one caller again.
    await running.call("let go", {}, seconds=10)
    assert await pay(running, "two", other) == ACCEPTED


async def test_who_answers_by_calling_again_is_asked_again(running: Connected) -> None:
    with pytest.raises(InputNeeded):
        await pay(running, "one", Caller(later=True))
    # A turn of the program: it has ended what it could not go on with.
    await running.call("let go", {}, seconds=10)
    assert await pay(running, "one", Caller()) == ACCEPTED


def test_a_server_that_leaves_much_unanswered_is_not_believed_any_more() -> None:
    callers = Callers()
    for id_ in range(2_000):
        callers.begin(id_, None)
        assert callers.leave(id_)
    for id_ in range(2_000):
        callers.answered(id_)
    line = Caller()
    callers.begin(5_000, line)
    asks: Json = {"method": "elicitation/create"}
    assert callers.meant(asks) == (None, None)
    # Progress names its own.
    assert callers.meant(_progress(5_000)) == (5_000, line)
    assert callers.meant(_progress(4_999))[1] is None
    callers.forget()
    assert callers.meant(asks) == (5_000, line)


def _progress(token: Any) -> Json:
    return {"method": "notifications/progress", "params": {"progressToken": token}}


async def test_progress_on_the_stream_of_a_call_is_its_own_or_nobodys(running: Connected) -> None:
    line, beside = Caller(), Beside(running)
    for token in (6, "7", 7, None):
        said: Json = _progress(token)
        said["params"]["progress"] = 1
        assert beside.heard(said, line, 7) is None
    assert line.heard == [1]
    # An id comes back with the answer: a very long one is not taken.
    assert beside.heard({"id": "x" * 1_000, "method": "ping"}, line) is None


class Aside:
    """Says on the stream of no call what a test wants said."""

    def __init__(self, server: Server) -> None:
        self.says: asyncio.Queue[bytes] = asyncio.Queue()
        self.server = server
        server.stream = self

    async def __call__(self, writer: Writer) -> None:
        while True:
            writer.write(event(await self.says.get()))
            await writer.drain()

    async def ask(self, name: str) -> Any:
        """A question there, and what we answered."""
        self.says.put_nowait(note("notifications/message", {"level": "info", "data": "secret"}))
        asked = (
            b'{"jsonrpc":"2.0","id":"%b","method":"elicitation/create","params":{"message":"?"}}'
        )
        self.says.put_nowait(asked % name.encode())

        def told() -> list[Any]:
            return [said["result"] for _, said, _ in self.server.heard if said.get("id") == name]

        await until(lambda: bool(told()))
        return told()[0]["action"]


async def test_a_question_on_the_stream_of_no_call_is_the_only_callers_or_nobodys() -> None:
    client, other = HttpClient(Guard()), Caller()
    async with serving() as server:
        aside = Aside(server)
        upstream = address(server.port, client, elicitation=True)
        await upstream.open()

        def calls() -> int:
            return sum(said.get("method") == "tools/call" for _, said, _ in server.heard)

        mine = asyncio.create_task(upstream.call("no answer", {}, seconds=60, line=other))
        await until(lambda: calls() == 1)
        # The control: it is alone.
        assert await aside.ask("q1") == "accept"
        assert other.heard == ["secret", "?"]
        other.heard.clear()
        theirs = asyncio.create_task(upstream.call("no answer", {}, seconds=60))
        await until(lambda: calls() == 2)
        assert await aside.ask("q2") == "decline"
        theirs.cancel()
        await asyncio.gather(theirs, return_exceptions=True)
        assert await aside.ask("q3") == "decline"
        aside.says.put_nowait(note("notifications/progress", {"progressToken": -1, "progress": 1}))
        assert await aside.ask("q4") == "decline"
        assert other.heard == []
        mine.cancel()
        await asyncio.gather(mine, return_exceptions=True)
        await upstream.close()
    await client.close()
