"""What becomes of an answer: a value, or an error that says whether anything was done."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import ANY

import orjson
import pytest
import pytest_asyncio

from tests.house import ME
from tests.providers.http_tools import definition, gate
from tests.providers.service import Answer, Service, answer, service
from tests.providers.test_http_request import TRAVERSALS
from toolgate import Toolgate
from toolgate.call import Output
from toolgate.errors import InvalidArguments
from toolgate.settings.outward import HttpTools
from toolgate.text import values

RESPONSES: dict[str, dict[str, Any]] = {
    "plain": {},
    "items": {"path": "data.items"},
    "first": {"path": "data.items.0.name"},
    "headed": {"headers": ["Location", "Link"]},
    "slack": {"error": "error"},
    "small": {"most": 1_000},
    "as_text": {"kind": "text"},
    "as_json": {"kind": "json"},
}


class House(NamedTuple):
    gate: Toolgate
    far: Service

    async def ask(self, tool: str, said: Answer) -> Output:
        self.far.say(said)
        return await self.gate.call(tool, {}, caller=ME)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[House]:
    root: Path = tmp_path_factory.mktemp("answers")
    async with service() as far:
        reads = [
            definition({"url": f"{far.url}/x", "method": "GET", "response": of}, name=name)
            for name, of in RESPONSES.items()
        ]
        follows = definition(
            {"url": f"{far.url}/x", "method": "GET", "redirects": 2}, name="follow"
        )
        brief = definition({"url": f"{far.url}/x", "method": "GET", "timeout": 0.2}, name="brief")
        effects = [
            definition({"url": f"{far.url}/x"}, name=effect, effect=effect)
            for effect in ("idempotent", "irreversible")
        ]
        http = HttpTools(max_retries=0)
        place = {"url": f"{far.url}/v1/users/{{id}}/files", "method": "GET"}
        tools = (*reads, follows, brief, *effects, definition(place, name="place"))
        async with gate(root, *tools, place=far.place, http=http) as opened:
            yield House(opened, far)


pytestmark = pytest.mark.asyncio(loop_scope="module")
PNG = b"\x89PNG\r\n\x1a\n"

READ: list[tuple[str, Answer, Any]] = [
    ("plain", answer({"a": [1, None]}), {"a": [1, None]}),
    ("plain", answer("text"), "text"),
    ("plain", answer(None), None),
    ("plain", Answer(200, b'{"a":1}', "application/problem+json; charset=utf-8"), {"a": 1}),
    ("plain", Answer(204), None),
    ("plain", Answer(200, b""), None),
    ("plain", Answer(200, b"hello", "text/plain"), "hello"),
    ("plain", Answer(200, "grüße".encode("latin-1"), "text/plain; charset=iso-8859-1"), "grüße"),
    ("plain", Answer(200, b"<a/>", "application/xml"), "<a/>"),
    (
        "plain",
        Answer(200, b"a", "text/plain; charset=punycode"),
        {"content": [{"type": "resource", "resource": ANY}]},
    ),
    (
        "plain",
        Answer(200, PNG, "image/png"),
        {"content": [{"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/png"}]},
    ),
    ("as_text", Answer(200, b"{}", "application/json"), "{}"),
    ("as_json", Answer(200, b"{}", "text/plain"), {}),
    ("items", answer({"data": {"items": [1, 2]}}), [1, 2]),
    ("first", answer({"data": {"items": [{"name": "ann"}]}}), "ann"),
    ("slack", answer({"ok": True, "channel": "C1"}), {"ok": True, "channel": "C1"}),
    (
        "headed",
        answer({"id": 7}, 201, Location="/x/7", X_Other="no"),
        {"status": 201, "headers": {"location": "/x/7"}, "body": {"id": 7}},
    ),
]


@pytest.mark.req("P2")
@pytest.mark.parametrize(("tool", "said", "data"), READ, ids=lambda one: str(one)[:40])
async def test_an_answer_becomes_a_value(house: House, tool: str, said: Answer, data: Any) -> None:
    output = await house.ask(tool, said)
    assert output.ok, output
    assert output.data == data


@pytest.mark.req("P2")
async def test_on_the_wire_no_argument_leads_out_of_its_place(house: House) -> None:
    house.far.say(Answer())
    sent, before = 0, len(house.far.seen)
    for value in TRAVERSALS:
        try:
            output = await house.gate.call("place", {"id": value}, caller=ME)
        except InvalidArguments:
            # Some servers decode before they look for parts: a slash is refused.
            continue
        assert output.ok
        sent += 1
        target = house.far.seen[-1].target
        assert target.startswith("/v1/users/")
        assert target.endswith("/files")
        assert target.count("/") == 4
    assert 0 < sent < len(TRAVERSALS)
    assert len(house.far.seen) == before + sent


async def test_bytes_are_content_that_says_what_it_is(house: House) -> None:
    output = await house.ask("plain", Answer(200, b"\x00\xff", "application/zip"))
    [block] = output.data["content"]
    assert block["resource"] == {
        "uri": f"call:{output.call_id}", "mimeType": "application/zip", "blob": "AP8=",
    }  # fmt: skip


UNREADABLE: list[tuple[str, Answer]] = [
    ("plain", Answer(200, b"{broken")),
    ("plain", Answer(200, b"[" * 900 + b"]" * 900)),
    ("plain", Answer(200, b'{"a":' * 300 + b"1" + b"}" * 300)),
    ("plain", Answer(200, b'{"a":NaN}')),
    ("items", answer({"data": None})),
]


@pytest.mark.parametrize(("tool", "said"), UNREADABLE, ids=lambda one: str(one)[:40])
async def test_an_answer_that_cannot_be_read_says_that_it_ran(
    house: House, tool: str, said: Answer
) -> None:
    output = await house.ask(tool, said)
    assert output.error is not None
    assert output.error.code == "invalid_output"


@pytest.mark.req("P2")
async def test_what_is_larger_than_an_answer_is_kept_aside(house: House) -> None:
    output = await house.ask("plain", answer({"rows": ["x" * 100] * 5_000}))
    assert output.ok
    assert output.data["size"] > 500_000
    assert output.data["reference"].startswith("out_")


# Status, what it says, tool -> code, status of the output, whether trying again can help.
REFUSED: list[tuple[Answer, str, str, str, bool]] = [
    (
        answer({"title": "Bad", "detail": "No such user."}, 404),
        "plain",
        "tool_error",
        "error",
        False,
    ),
    (answer({}, 400), "irreversible", "tool_error", "error", False),
    (answer({}, 409), "irreversible", "tool_error", "error", False),
    (answer({}, 422), "idempotent", "tool_error", "error", False),
    (answer({}, 401), "irreversible", "tool_error", "error", False),
    (answer({}, 403), "plain", "tool_error", "error", False),
    (answer({}, 425), "irreversible", "tool_error", "error", True),
    (answer({}, 429, Retry_After="7"), "irreversible", "tool_error", "error", True),
    (answer({}, 408), "irreversible", "execution_failed", "unknown", False),
    (answer({}, 408), "plain", "execution_failed", "error", False),
    (answer({}, 500), "irreversible", "execution_failed", "unknown", False),
    (answer({}, 500), "idempotent", "execution_failed", "error", False),
    (answer({}, 503, Retry_After="7"), "irreversible", "execution_failed", "unknown", False),
    (answer({}, 503), "plain", "execution_failed", "error", False),
    (answer({}, 302, Location="/y"), "irreversible", "execution_failed", "unknown", False),
    (answer({}, 302, Location="/y"), "plain", "execution_failed", "error", False),
    (answer({}, 304), "plain", "execution_failed", "error", False),
    (answer({}, 599), "plain", "execution_failed", "error", False),
    (Answer(200, b"half", missing=9), "plain", "execution_failed", "error", False),
    # It said that it was done: only the answer is lost.
    (Answer(200, b"half", missing=9), "irreversible", "invalid_output", "error", False),
    (Answer(500, b"half", missing=9), "irreversible", "execution_failed", "unknown", False),
    (Answer(200, b"x" * 1_001, "text/plain"), "small", "execution_failed", "error", False),
    (answer({"ok": False, "error": "channel_not_found"}), "slack", "tool_error", "error", False),
]


@pytest.mark.req("P2", "S3")
@pytest.mark.parametrize(
    ("said", "tool", "code", "status", "again"), REFUSED, ids=lambda one: str(one)[:40]
)
async def test_a_refusal_says_whether_anything_was_done(
    house: House, said: Answer, tool: str, code: str, status: str, *, again: bool
) -> None:
    output = await house.ask(tool, said)
    assert output.error is not None
    assert (output.error.code, output.status, output.error.retryable) == (code, status, again)
    assert ("may have taken effect" in output.error.message) == (status == "unknown")


TOLD: list[tuple[Answer, str]] = [
    (
        answer({"title": "Bad", "detail": "No such user."}, 404),
        "404 Not Found: No such user. Nothing",
    ),
    (
        answer({"error": {"message": "too\x1b[31m \u202elong\n"}}, 400),
        "400 Bad Request: too[31m long.",
    ),
    (answer({"errors": [{"message": "a"}, {"message": "b"}]}, 422), ": a; b."),
    (answer({"error": "invalid"}, 400), ": invalid."),
    (answer({"message": "x" * 9_000}, 400), "x" * 299 + "…"),
    (Answer(400, b"plain words", "text/plain"), ": plain words."),
    (Answer(400, b"<html>words</html>", "text/html"), "400 Bad Request. Nothing"),
    (Answer(400, b"{broken"), "400 Bad Request. Nothing"),
    (answer({}, 401), "tell the operator"),
    (answer({}, 302, Location="http://169.254.169.254/"), "is not followed"),
]


@pytest.mark.parametrize(("said", "told"), TOLD, ids=lambda one: str(one)[:40])
async def test_an_error_tells_in_a_few_words_what_the_service_said(
    house: House, said: Answer, told: str
) -> None:
    output = await house.ask("plain", said)
    assert output.error is not None
    assert told in output.error.message
    assert len(output.error.message) < 600
    assert output.error.details["status"] == said.status


@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        ("7", 7, 7),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("9" * 400, 86_400, 86_400),
        ("soon", 0, 0),
    ],
)
async def test_when_to_come_back_is_passed_on(
    house: House, after: str, least: float, most: float
) -> None:
    output = await house.ask("plain", answer({}, 429, Retry_After=after))
    assert output.error is not None
    assert least <= output.error.details.get("retry_after", 0) <= most


@pytest.mark.req("P2")
async def test_a_redirect_is_followed_only_on_the_same_host(house: House) -> None:
    asked = len(house.far.seen)
    house.far.say(answer({}, 302, Location="/y"), answer({"here": True}))
    output = await house.gate.call("follow", {}, caller=ME)
    assert output.data == {"here": True}
    assert [one.target for one in house.far.seen[asked:]] == ["/x", "/y"]

    async with service() as other:
        for where in (
            f"{other.url}/y",
            f"//{other.place}/y",
            "file:///etc/passwd",
            "http://[::1]/",
        ):
            house.far.say(answer({}, 302, Location=where))
            output = await house.gate.call("follow", {}, caller=ME)
            assert output.error is not None
            assert "not followed" in output.error.message
        assert other.connections == 0

    house.far.say(answer({}, 307, Location="/again"))
    asked = len(house.far.seen)
    assert not (await house.gate.call("follow", {}, caller=ME)).ok
    assert len(house.far.seen) - asked == 3


@pytest.mark.req("P2")
async def test_a_service_that_does_not_answer_in_time_is_left(house: House) -> None:
    over = asyncio.Event()

    async def never(_seen: Any) -> Answer:
        await over.wait()
        return Answer()

    house.far.answers = never
    output = await house.gate.call("brief", {}, caller=ME)
    over.set()
    assert output.error is not None
    assert output.error.code == "timed_out"
    assert output.error.retryable


async def test_many_at_once_share_a_few_connections_and_cross_no_answer(house: House) -> None:
    house.far.answers = lambda seen: answer(orjson.loads(seen.body))
    calls = [house.gate.call("idempotent", {"id": number}, caller=ME) for number in range(100)]
    found = await asyncio.gather(*calls)
    assert [output.data for output in found] == [{"id": number} for number in range(100)]


@pytest.mark.req("P2")
async def test_an_answer_of_too_many_values_is_not_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    many: list[dict[str, int]] = [{}] * 2_000
    assert (await house.ask("plain", answer(many))).data == many
    monkeypatch.setattr(values, "MOST", 1_000)
    output = await house.ask("plain", answer(many))
    assert output.error is not None
    assert output.error.code == "invalid_output"
    # A table that is sent as a text is one value.
    assert (await house.ask("plain", answer({"csv": "a,b,c,d" * 1_000}))).ok
