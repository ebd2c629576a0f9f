"""More than a hundred odd answers of a policy server; each is a no: `policy_unavailable`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.engines.odd_answers import YES, answer, answers, is_json_true
from tests.engines.questions import asked, listed, tool
from tests.engines.test_opa import PATIENT
from tests.house import HERE
from toolgate.breaker import Limits
from toolgate.caller import Action
from toolgate.engines.guard import Guarded
from toolgate.engines.modules import build
from toolgate.engines.opa import Opa
from toolgate.errors import PolicyUnavailable
from toolgate.net.client import HttpClient


@asynccontextmanager
async def answering(
    raw: bytes | None, *, seconds: float = 20.0, limits: Limits = PATIENT
) -> AsyncGenerator[tuple[Opa, list[bytes]]]:
    """An engine that believes to be ready, and a server that says just this; `None` is silence."""
    seen: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head.partition(b"\r\n")[0])
        if raw is None:
            await over.wait()
        else:
            writer.write(raw)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = HttpClient(HERE, timeout=20.0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    guard = Guarded(PolicyUnavailable, "policy server", limits=limits)
    policy = Opa(client, build({}, {}), url, timeout=seconds, guard=guard)
    policy._ready = True  # pyright: ignore[reportPrivateUsage]
    try:
        yield policy, seen
    finally:
        over.set()
        await policy.close()
        await client.close()
        server.close()
        await server.wait_closed()


def test_there_are_a_hundred_and_many_that_a_lenient_reader_would_believe() -> None:
    assert len(answers()) >= 100
    assert sum(is_json_true(raw) for raw in answers().values()) >= 50


@pytest.mark.req("G7")
async def test_a_plain_answer_is_taken_literally() -> None:
    for body, said in ((YES, True), (b'{"result":false}', False)):
        async with answering(answer(body)) as (policy, seen):
            assert await policy.allows(asked(Action.REQUEST)) is said
            assert seen == [b"POST /v1/data/toolgate_gate/call?strict-builtin-errors=true HTTP/1.1"]
    told = b'{"decision_id": "x", "metrics": {"a": 1}, "result": true}'
    async with answering(answer(told, kind="application/json; charset=utf-8")) as (policy, _):
        assert await policy.allows(asked(Action.REQUEST))


@pytest.mark.req("G7")
@pytest.mark.parametrize("name", sorted(answers()))
async def test_an_odd_answer_is_no(name: str) -> None:
    async with answering(answers()[name]) as (policy, _):
        with pytest.raises(PolicyUnavailable) as caught:
            await policy.allows(asked(Action.REQUEST))
        assert caught.value.code == "policy_unavailable"
        assert "127.0.0.1" not in caught.value.message
        assert not policy.health().ok
        # An empty list is an answer to another question: nothing is shown.
        if name != "result []":
            with pytest.raises(PolicyUnavailable):
                await policy.visible(listed(), [tool("a")])


@pytest.mark.req("G7")
async def test_an_answer_that_does_not_come_is_no() -> None:
    async with answering(None, seconds=0.05) as (policy, _):
        with pytest.raises(PolicyUnavailable):
            await policy.allows(asked(Action.REQUEST))


@pytest.mark.req("G7")
@pytest.mark.parametrize(
    "result",
    ['["other"]', '["get_order", "other"]', "[1]", "[null]", '"get_order"', "true", "{}", "null"],
)
async def test_a_list_holds_only_what_was_asked_about(result: str) -> None:
    async with answering(answer(f'{{"result": {result}}}'.encode())) as (policy, _):
        with pytest.raises(PolicyUnavailable):
            await policy.visible(listed(), [tool("get_order")])
    async with answering(answer(b'{"result": ["get_order"]}')) as (policy, _):
        assert await policy.visible(listed(), [tool("get_order"), tool("x")]) == {"get_order"}


@pytest.mark.req("G7")
async def test_a_server_that_keeps_failing_is_not_asked_for_a_while() -> None:
    limits = Limits(window=4, at_least=4, failed_share=0.5, wait=3600.0)
    async with answering(answer(b"", status=500), limits=limits) as (policy, seen):
        for _ in range(10):
            with pytest.raises(PolicyUnavailable):
                await policy.allows(asked(Action.REQUEST))
        assert len(seen) == 4
        with pytest.raises(PolicyUnavailable, match="left alone for a moment"):
            await policy.visible(listed(), [tool("a")])
    async with answering(answer(b"", status=500)) as (policy, seen):
        for _ in range(10):
            with pytest.raises(PolicyUnavailable):
                await policy.allows(asked(Action.REQUEST))
        assert len(seen) == 10
