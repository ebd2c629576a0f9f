"""Requests that were meant for another name are not ours, and two headers are not one."""

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import open_gate
from toolgate import Call, Extension, Toolgate
from toolgate.errors import CallRefused, RateLimited
from toolgate.server import app as app_
from toolgate.server.app import App
from toolgate.server.doors import doors
from toolgate.settings.settings import Server, Settings
from toolgate.tenancy.keys import FreshKey, Role

Message = MutableMapping[str, Any]


async def asgi(
    app: App,
    method: str,
    path: str,
    headers: list[tuple[bytes, bytes]],
    body: bytes = b"",
    messages: list[Message] | None = None,
) -> tuple[int, dict[str, Any]]:
    sent: list[Message] = []
    waiting = messages or [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": headers,
    }
    await app(scope, receive, send)
    return sent[0]["status"], orjson.loads(sent[1]["body"])


async def agent_key(gate: Toolgate) -> FreshKey:
    await gate.tenancy.set_agent("acme", "billing")
    return await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")


def listening(**fields: str) -> Server:
    return Server.model_validate(fields)


OURS = {
    "default": (
        listening(),
        ["localhost", "localhost:8700", "127.0.0.1", "127.0.0.1:1", "LocalHost:80", "[::1]:8700"],
    ),
    "public name": (
        listening(host="0.0.0.0", public_url="https://tools.example.com/base"),  # noqa: S104
        ["tools.example.com", "tools.example.com:443", "TOOLS.example.com", "127.0.0.1:8700"],
    ),
    "public address": (
        listening(host="::", public_url="http://[fd00::1]:8700"),
        ["[fd00::1]:8700", "[FD00::1]", "[::1]"],
    ),
    "another address": (
        listening(host="fd00::2", public_url="http://x"),
        ["[fd00::2]:8700", "x", "x:80"],
    ),
}
THEIRS = [
    None,
    b"",
    b":",
    b":8700",
    b"evil.example",
    b"evil.example:8700",
    b"localhost.evil.example",
    b"evil.example@localhost",
    b"localhost@evil.example",
    b"localhost:8700@evil.example",
    b"localhost:8700:8700",
    b"localhost:port",
    b"localhost.",
    b"localhost:8700/",
    b"localhost ",
    b"127.0.0.1.evil.example",
    b"127.1",
    b"2130706433",
    b"0.0.0.0",
    b"[::1].evil.example",
    b"[::1]evil",
    b"[::1]:8700:evil",
    b"[::1",
    b"::1",
    b"[evil.example]",
    b"\xff\xfe",
    b"localhost\x00",
]


@pytest.mark.req("V3")
@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("path", ["/healthz", "/v1/tools"])
async def test_only_a_host_that_names_this_server_is_answered(
    gate: Toolgate, kind: str, path: str
) -> None:
    server, names = OURS[kind]
    app = App(gate, server)
    for name in names:
        status, _ = await asgi(app, "GET", path, [(b"host", name.encode())])
        assert status in {200, 401}, name
    for header in THEIRS:
        headers = [] if header is None else [(b"host", header)]
        status, body = await asgi(app, "GET", path, headers)
        assert (status, body["code"]) == (421, "misdirected_request"), header


@pytest.mark.req("V1", "V3")
@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_mcp_is_answered_under_the_same_names_alone(
    gate: Toolgate, kind: str, method: str
) -> None:
    server, names = OURS[kind]
    secret = (await agent_key(gate)).secret
    knows = (b"authorization", f"Bearer {secret}".encode())
    async with doors(gate, Settings(server=server)) as app:
        for name in names:
            # Without a message, and without a session, the client is to blame: it was let in.
            status, _ = await asgi(app, method, "/mcp", [(b"host", name.encode()), knows])
            assert status == 400, name
        for header in THEIRS:
            host = [] if header is None else [(b"host", header)]
            status, body = await asgi(app, method, "/mcp", [*host, knows])
            assert (status, body["code"]) == (421, "misdirected_request"), header
        origin = (b"origin", b"https://evil.example")
        status, body = await asgi(
            app, method, "/mcp", [(b"host", names[0].encode()), knows, origin]
        )
        assert (status, body["code"]) == (403, "forbidden_origin")


async def test_without_the_check_a_rebound_name_would_be_answered(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def anybody(_server: Server) -> Callable[[bytes | None], bool]:
        return lambda _header: True

    monkeypatch.setattr(app_, "host_check", anybody)
    app = App(gate, listening())
    status, _ = await asgi(app, "GET", "/healthz", [(b"host", b"evil.example")])
    assert status == 200, "the guard is what the tests above stand on"
    async with doors(gate, Settings()) as served:
        status, _ = await asgi(served, "POST", "/mcp", [(b"host", b"evil.example")])
    assert status == 401, "and only a key would be missing"


@pytest.mark.req("V3")
async def test_of_two_hosts_or_two_keys_neither_counts(gate: Toolgate) -> None:
    good = await agent_key(gate)
    app = App(gate, listening())
    ours, key = (b"host", b"localhost"), (b"authorization", f"Bearer {good.secret}".encode())
    assert (await asgi(app, "GET", "/v1/tools", [ours, key]))[0] == 200
    for twice in ([(b"host", b"evil.example"), ours], [ours, (b"host", b"evil.example")]):
        assert (await asgi(app, "GET", "/v1/tools", [*twice, key]))[0] == 421
    bad = (b"authorization", b"Bearer wrong")
    for pair in ([bad, key], [key, bad], [key, key]):
        assert (await asgi(app, "GET", "/v1/tools", [ours, *pair]))[0] == 401


@pytest.mark.req("V3")
async def test_a_revoked_key_opens_nothing_from_the_next_request_on(gate: Toolgate) -> None:
    fresh = await agent_key(gate)
    app = App(gate, listening())
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {fresh.secret}".encode())]
    assert (await asgi(app, "GET", "/v1/tools", headers))[0] == 200
    await gate.tenancy.revoke_key(fresh.key.id)
    assert (await asgi(app, "GET", "/v1/tools", headers))[0] == 401


class TooMany(RateLimited):
    """A refusal of an operator's own."""

    code = "too_many"


class Refuses(Extension):
    """Refuses with the class and details it was given."""

    def __init__(self, error: CallRefused) -> None:
        self._error = error

    def before(self, call: Call) -> None:
        raise self._error


@pytest.mark.req("X5")
async def test_an_extensions_own_refusal_is_told_as_what_it_stands_for(tmp_path: Path) -> None:
    error = TooMany(
        "Three are enough.", limit=3, thing=object(), status=200, code="mine", phase="x"
    )
    async with open_gate(tmp_path, Refuses(error)) as gate:
        fresh = await agent_key(gate)
        key = (b"authorization", f"Bearer {fresh.secret}".encode())
        status, body = await asgi(
            App(gate, listening()),
            "POST",
            "/v1/call",
            [(b"host", b"localhost"), key],
            b'{"tool": "echo", "args": {"text": "x"}}',
        )
    assert (status, body) == (
        429,
        {
            "type": "urn:toolgate:error:too_many",
            "title": "too many",
            "status": 429,
            "code": "too_many",
            "detail": "Three are enough.",
            "retryable": True,
            "limit": 3,
            "thing": "object",
        },
    )


@pytest.mark.req("X5")
async def test_what_nobody_thought_of_is_a_problem_and_not_a_trace(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_given: Any, **_named: Any) -> Any:
        raise LookupError("canary in /etc/passwd")

    monkeypatch.setattr(gate, "call", broken)
    fresh = await agent_key(gate)
    key = (b"authorization", f"Bearer {fresh.secret}".encode())
    status, body = await asgi(
        App(gate, listening()),
        "POST",
        "/v1/call",
        [(b"host", b"localhost"), key],
        b'{"tool": "echo"}',
    )
    assert (status, body["code"]) == (500, "internal_error")
    assert "canary" not in str(body)
    # The log neither: its kind and place, no text and no trace.
    [record] = caplog.records
    assert record.exc_info is None
    place = f"LookupError in {__name__}, line {broken.__code__.co_firstlineno + 1}"
    assert record.getMessage() == f"a request failed with {place}"
    assert "canary" not in caplog.text


async def test_a_body_in_parts_is_put_together_and_a_broken_one_is_told(gate: Toolgate) -> None:
    fresh = await agent_key(gate)
    key = (b"authorization", f"Bearer {fresh.secret}".encode())
    app, headers = App(gate, listening()), [(b"host", b"localhost"), key]
    whole = b'{"tool": "echo", "args": {"text": "x"}}'
    parts: list[Message] = [
        {"type": "http.request", "body": bytes([byte]), "more_body": True} for byte in whole
    ]
    last: Message = {"type": "http.request", "body": b""}
    status, body = await asgi(app, "POST", "/v1/call", headers, messages=[*parts, last])
    assert (status, body["data"]) == (200, {"text": "x"})
    gone: Message = {"type": "http.disconnect"}
    status, body = await asgi(app, "POST", "/v1/call", headers, messages=[*parts[:9], gone])
    assert (status, body["code"]) == (400, "invalid_request")
    status, body = await asgi(app, "POST", "/v1/call", headers, messages=[gone])
    assert (status, body["code"]) == (400, "invalid_request")


async def test_what_is_not_http_is_not_answered(gate: Toolgate) -> None:
    async def never(*_given: Any) -> Any:
        raise AssertionError

    with pytest.raises(RuntimeError, match="does not speak websocket"):
        await App(gate, listening())({"type": "websocket"}, never, never)
