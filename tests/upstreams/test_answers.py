"""Answers that nobody can read, and answers with what nobody should: both are kept out."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from tests.upstreams import misbehaving
from tests.upstreams.bare import Bare, address, program
from tests.upstreams.misbehaving import STREAM, Json, error, event, last, serving, writes
from toolgate.errors import InvalidOutput, ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.spec.secret import HIDDEN
from toolgate.text import values
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.cover import Cover

pytestmark = pytest.mark.req("P2")
KEY = 'k-1/2"3-secret'
MANY: list[list[int]] = [[]] * 2_000
WAYS = ["program", "body", "stream"]


def result(id_: Any, value: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": value})


@asynccontextmanager
async def answering(
    way: str, monkeypatch: pytest.MonkeyPatch, **made: Any
) -> AsyncGenerator[Connected]:
    """`made` is what tools answer with over HTTP, by their names; the program knows its own."""
    if way == "program":
        upstream = program(sandbox=Bare(), script="asking", secrets={"API_KEY": KEY})
        await upstream.open(20)
        yield upstream
        await upstream.close()
        return
    for name, value in made.items():

        def answer(id_: Any, value: Any = value) -> bytes:
            body = value if isinstance(value, bytes) else result(id_, value)
            return STREAM + event(body) if way == "stream" else last(body)

        monkeypatch.setitem(misbehaving.ANSWERS, name, writes(answer))
    client = HttpClient(Guard())
    async with serving() as server:
        upstream = address(server.port, client, headers={"Authorization": f"Bearer {KEY}"})
        await upstream.open()
        yield upstream
        await upstream.close()
    await client.close()


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_of_too_many_values_is_not_read(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with answering(way, monkeypatch, many={"made": MANY}) as upstream:
        # The control, and without the guard.
        assert len((await upstream.call("many", {}, seconds=9))["made"]) >= 2_000
        monkeypatch.setattr(values, "MOST", 1_000)
        with pytest.raises(ToolgateError, match="values") as told:
            await upstream.call("many", {}, seconds=9)
        # Over HTTP it is known whose answer it is.
        assert isinstance(told.value, InvalidOutput) == (way != "program")


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_is_far_too_deep_is_told_as_that(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = b'{"jsonrpc":"2.0","id":%d,"result":{"made":' + b"[" * 300 + b"]" * 300 + b"}}"
    shallow = b"[" * 200 + b"]" * 200

    def answer(id_: Any) -> bytes:
        return STREAM + event(raw % id_) if way == "stream" else last(raw % id_)

    async with answering(way, monkeypatch, fine={"made": orjson.loads(shallow)}) as upstream:
        monkeypatch.setitem(misbehaving.ANSWERS, "deep", writes(answer))
        with pytest.raises(InvalidOutput, match="too deep"):
            await upstream.call("deep", {}, seconds=9)
        # The control: it is one call's affair.
        name = "many" if way == "program" else "fine"
        assert (await upstream.call(name, {}, seconds=9))["made"]


def test_what_stands_in_a_text_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST", 1_000)
    table = 'a,"b",{c},[d]\\,\n' * 5_000
    for fine in ({"text": table}, {"text": [table, 1, 2]}, list(range(900)), {"a": ["\\"] * 300}):
        assert not values.are_too_many(orjson.dumps(fine))
    many: list[Any] = [list(range(1_100)), [[]] * 600, [{}] * 600, [""] * 3_000, ['"'] * 1_100]
    for over in many:
        assert values.are_too_many(orjson.dumps(over) + b" " * 1_000)
    assert values.are_too_many(orjson.dumps([table, *range(1_100)]))


def uncovered(_cover: Cover, said: Any, _raw: bytes) -> Any:
    return said


class Heard:
    """Whoever waits for a call, and what it hears meanwhile."""

    wants_progress = True
    log_level = "debug"

    def __init__(self) -> None:
        self.capabilities: dict[str, Any] = {}
        self.told: list[Any] = []

    def progress(self, done: float, total: float | None, message: str) -> None:
        self.told.append(message)

    def log(self, level: str, message: Any) -> None:
        self.told.append(message)

    def queued(self, call_id: str) -> None:
        self.told.append(call_id)

    async def ask(self, questions: Any) -> Any:
        return {}


async def test_what_a_program_was_given_in_secret_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering("program", monkeypatch) as upstream:
        line = Heard()
        told = await upstream.call("tell", {}, seconds=9, line=line)
        assert told["content"][0]["text"] == f"{HIDDEN} {HIDDEN}"
        assert told["key"] == {HIDDEN: HIDDEN}
        assert line.told == [f"with {HIDDEN}", {"key": HIDDEN}]
        # The guard-off control.
        monkeypatch.setattr(Cover, "over", uncovered)
        told = await upstream.call("tell", {}, seconds=9)
        assert told["content"][0]["text"] == f"{KEY} {KEY}"


def echoed() -> Json:
    """As a server may write it: whole, without its kind, in other letters."""
    text = orjson.dumps([f"Bearer {KEY}", KEY]).decode()
    return {"content": [{"type": "text", "text": f"{text} {KEY}"}], "structuredContent": {KEY: 1}}


@pytest.mark.parametrize("way", ["body", "stream"])
async def test_what_a_server_was_sent_in_secret_does_not_come_back(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = orjson.dumps(orjson.loads(error(None, -32602, f"not with {KEY}")))
    async with answering(
        way, monkeypatch, echo=echoed(), refused=fault, plain={"a": 1}
    ) as upstream:
        told = str(await upstream.call("echo", {}, seconds=9))
        assert HIDDEN in told
        assert "k-1" not in told
        # The control: what holds none comes as it is.
        assert await upstream.call("plain", {}, seconds=9) == {"a": 1}
        if way == "body":
            with pytest.raises(ToolgateError, match="not with") as refused:
                await upstream.call("refused", {}, seconds=9)
            assert KEY not in str(refused.value)
        monkeypatch.setattr(Cover, "over", uncovered)
        assert KEY in str(await upstream.call("echo", {}, seconds=9))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Bearer abcdef", "abcdef"),
        ("Basic dXNlcjpwYXNzd29yZA==", "password"),
        ("Basic dXNlcjpwYXNzd29yZA==", "user:password"),
        ("first-line\nsecond-line", "second-line"),
        ("a/b-c/d", "a%2Fb-c%2Fd"),
        ("12345678", 12345678),
    ],
)
def test_a_secret_is_known_in_other_forms(given: str, said: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 12345678, "result": {"x": [said]}}
    found = Cover([given]).over(message, orjson.dumps(message))
    assert found == {"jsonrpc": "2.0", "id": 12345678, "result": {"x": [HIDDEN]}}


def test_without_secrets_nothing_is_looked_at() -> None:
    assert Cover().is_empty
    # What is so short stands anywhere.
    assert Cover(["abc", ""]).is_empty
    assert not Cover(["\udcff\udcff\udcff\udcff"]).is_empty
    message = {"result": {"x": "plain"}}
    assert Cover(["secret"]).over(message, orjson.dumps(message)) is message
