"""The wire to a server: what is sent, to whom, and what becomes of every kind of answer."""

import subprocess
import sys
from typing import Any

import aiohttp
import orjson
import pytest

from tests.client.far_side import answer, far_side
from tests.test_architecture import every_error
from toolgate import errors
from toolgate.client.problem import error_of
from toolgate.client.wire import Wire
from toolgate.errors import (
    InvalidRequest,
    PermissionDenied,
    RateLimited,
    ServerUnreachable,
    ToolgateError,
    ToolNotFound,
)
from toolgate.server.problems import problem, wire_problem

pytestmark = pytest.mark.req("V2")
KEY = "tg_agent_0123456789"


async def test_the_key_and_the_body_arrive_and_the_answer_comes_back_as_json() -> None:
    async with far_side(answer(200, {"ok": True})) as side, Wire(side.url, KEY) as wire:
        told = await wire.request(
            "POST", "/v1/call", query={"a": "ä b", "yes": True, "no": None}, body={"tool": "echo"}
        )
        assert told == {"ok": True}
        [heard] = side.heard
    assert heard.startswith("POST /v1/call?a=%C3%A4+b&yes=true HTTP/1.1")
    assert f"Authorization: Bearer {KEY}" in heard
    assert heard.endswith('{"tool":"echo"}')


async def test_a_path_of_the_server_is_put_behind_its_own() -> None:
    async with far_side(answer(200, {})) as side, Wire(f"{side.url}/gate/", KEY) as wire:
        await wire.request("GET", "/v1/tools/a%2Fb")
        assert side.heard[0].startswith("GET /gate/v1/tools/a%2Fb ")
        with pytest.raises(InvalidRequest, match="begins with '/'"):
            await wire.request("GET", "@elsewhere")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://tools.example.com", "in the clear"),
        ("http://127.0.0.1.example.com", "in the clear"),
        ("ftp://127.0.0.1", "begins with https"),
        ("https://", "begins with https"),
        ("https://me:secret@tools.example.com", "no user, password"),
        ("https://tools.example.com?key=secret", "no user, password"),
        ("http://127.0.0.1:99999", "check its port"),
        (None, "is a text"),
    ],
)
def test_a_key_is_not_sent_in_the_clear_or_to_half_an_address(url: Any, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told) as refused:
        Wire(url, KEY)
    assert KEY not in str(refused.value)
    assert "secret@" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "http://[::1]:1", "http://127.9.9.9", "https://tools.example.com"]
)
def test_this_machine_and_https_are_taken(url: str) -> None:
    assert KEY not in repr(Wire(url, KEY))


def test_who_knows_the_network_can_allow_http() -> None:
    assert (
        Wire("http://gate.internal:8700/", KEY, allow_http=True).url == "http://gate.internal:8700"
    )


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX-Admin: 1", "ключ", None])
def test_what_is_no_key_is_not_put_into_a_header(key: Any) -> None:
    with pytest.raises(InvalidRequest, match="key") as refused:
        Wire("http://127.0.0.1", key)
    assert "X-Admin" not in str(refused.value)


async def test_a_caller_cannot_set_the_headers_that_say_who_asks() -> None:
    async with far_side(answer(200, {})) as side, Wire(side.url, KEY) as wire:
        for name in ("Authorization", "HOST", "cookie"):
            with pytest.raises(InvalidRequest, match="not for callers"):
                await wire.request("GET", "/v1/tools", headers={name: "x"})
        assert side.heard == []


@pytest.mark.parametrize("where", ["https://elsewhere.example/", "/v1/other"])
async def test_no_redirect_is_followed(where: str) -> None:
    sends = answer(307, b"", f"Location: {where}", "Set-Cookie: a=b")
    async with far_side(sends) as side, Wire(side.url, KEY) as wire:
        for _ in range(2):
            with pytest.raises(ServerUnreachable, match="a key is not sent there"):
                await wire.request("POST", "/v1/call", body={})
        assert len(side.heard) == 2
        assert "cookie" not in side.heard[1].lower()


async def test_a_redirect_would_have_carried_the_request_there() -> None:
    async with far_side(answer(200, {})) as other:
        sends = answer(307, b"", f"Location: {other.url}/v1/call")
        async with far_side(sends) as side, Wire(side.url, KEY) as wire:
            with pytest.raises(ServerUnreachable, match="a key is not sent there"):
                await wire.request("POST", "/v1/call", body={})
            assert other.heard == []
            async with aiohttp.ClientSession() as session, session.post(side.url) as followed:
                assert followed.status == 200
            assert len(other.heard) == 1, "the guard is what kept it away"


async def test_no_proxy_of_the_environment_gets_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with far_side(answer(200, {})) as side, far_side(answer(200, {"proxy": 1})) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with Wire(side.url, KEY) as wire:
            assert await wire.request("GET", "/v1/me") == {}
        assert proxy.heard == []


@pytest.mark.req("X5")
@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_the_class_that_was_sent(kind: type[ToolgateError]) -> None:
    given: Any = kind.__new__(kind)
    ToolgateError.__init__(given, "What to do next.", left=3, where={"a": [1]})
    given.problems = ("first",)
    given.retryable = True
    _status, body = problem(given, to_admin=True)
    found: Any = error_of(errors_json(body))
    known = "code" in vars(kind)
    assert type(found) is (kind if known else ToolgateError)
    assert (found.code, str(found)) == (kind.code, "What to do next.")
    assert (found.details, found.retryable) == ({"left": 3, "where": {"a": [1]}}, True)
    assert (found.call_id, found.began_ns) == ("", 0)


def errors_json(body: bytes) -> dict[str, Any]:
    return orjson.loads(body)


def test_what_a_class_has_of_its_own_is_there_too() -> None:
    denied = PermissionDenied("No.", phase="policy", reason="it is late")
    for to_admin, told in ((True, ("policy", "it is late")), (False, ("", ""))):
        found = error_of(errors_json(problem(denied, to_admin=to_admin)[1]))
        assert isinstance(found, PermissionDenied)
        assert (found.phase, found.reason) == told
    wrong = error_of(errors_json(problem(errors.InvalidPolicy(["line 1", "line 2"]))[1]))
    assert isinstance(wrong, errors.InvalidPolicy)
    assert wrong.problems == ("line 1", "line 2")


def test_what_only_the_door_says_keeps_its_code() -> None:
    found = error_of(errors_json(wire_problem("method_not_allowed")[1]))
    assert type(found).__mro__[1] is ToolgateError
    assert found.code == "method_not_allowed"
    assert "Allow" in str(found)


async def test_a_problem_is_raised_as_our_own_error() -> None:
    status, body = problem(ToolNotFound("nothing"))
    limited = problem(RateLimited("Wait.", retry_after=2.5))
    async with (
        far_side(answer(status, body), answer(*limited, "Retry-After: 3")) as side,
        Wire(side.url, KEY) as wire,
    ):
        with pytest.raises(ToolNotFound, match="'nothing'"):
            await wire.request("GET", "/v1/tools/nothing")
        with pytest.raises(RateLimited) as refused:
            await wire.request("GET", "/v1/tools")
        assert (refused.value.details, refused.value.retryable) == ({"retry_after": 2.5}, True)


async def test_a_server_that_is_not_there_is_told_as_what_to_check() -> None:
    async with far_side(answer(200, {})) as side:
        url = side.url
    async with Wire(url, KEY) as wire:
        with pytest.raises(ServerUnreachable, match="Nothing was sent") as refused:
            await wire.request("GET", "/v1/tools")
    assert f"GET {url}/healthz" in str(refused.value)
    assert refused.value.details == {"sent": False}
    assert refused.value.retryable
    assert KEY not in str(refused.value)


async def test_a_connection_that_breaks_is_told_as_one_that_may_have_been_heard() -> None:
    async with far_side(None) as side, Wire(side.url, KEY) as wire:
        with pytest.raises(ServerUnreachable, match="may have reached it") as refused:
            await wire.request("POST", "/v1/call", body={})
        assert refused.value.details["sent"] is True
        assert len(side.heard) == 1, "it is sent once"


async def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"
    async with far_side(half) as side, Wire(side.url, KEY, timeout=0.2) as wire:
        with pytest.raises(ServerUnreachable, match=r"no answer within 0\.2 s"):
            await wire.request("GET", "/v1/tools")


@pytest.mark.parametrize(
    "said",
    [
        answer(502, b"<html>Bad gateway</html>"),
        answer(503, b"Service Unavailable", "Retry-After: 7"),
        answer(404, {"error": "no such app"}),
        answer(200, b"<html>Welcome</html>"),
        answer(200, b"\x1f\x8b", "Content-Encoding: gzip"),
    ],
)
async def test_what_is_no_toolgate_server_is_called_that(said: bytes) -> None:
    async with far_side(said) as side, Wire(side.url, KEY) as wire:
        with pytest.raises(ServerUnreachable, match=r"Check") as refused:
            await wire.request("GET", "/v1/tools")
    waits = refused.value.details.get("retry_after")
    assert waits == (7.0 if b"Retry-After" in said else None)


async def test_what_is_not_json_is_not_sent() -> None:
    async with far_side(answer(200, {})) as side, Wire(side.url, KEY) as wire:
        with pytest.raises(InvalidRequest, match="cannot be sent as JSON"):
            await wire.request("POST", "/v1/call", body={"args": {"x": object()}})
        assert side.heard == []


def test_knowing_of_the_wire_loads_no_http_library() -> None:
    told = "import sys, toolgate.client.wire; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"aiohttp", "sqlalchemy", "uvicorn", "toolgate.gate.gate"} & set(loaded)
