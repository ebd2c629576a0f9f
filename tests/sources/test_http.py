"""An endpoint that answers with a tool file: fetched within bounds, and never trusted with code."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.house import HERE
from toolgate.errors import InvalidSpecs, SourceUnavailable
from toolgate.net.address import shown
from toolgate.net.client import HttpClient
from toolgate.net.errors import NotSent
from toolgate.sources import http, remote
from toolgate.sources.http import HttpSource
from toolgate.spec.tool import Origin

TOOLS = '{"tools": [{"name": "ping", "provider": "http", "effect": "pure"}]}'
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, *, seconds: float = 20.0) -> AsyncGenerator[HttpSource]:
    """A source on a real server of this handler."""
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    client = HttpClient(HERE, timeout=seconds)
    try:
        yield HttpSource(f"http://127.0.0.1:{runner.addresses[0][1]}/tools", client)
    finally:
        await client.close()
        await runner.cleanup()


def answering(text: str, *, status: int = 200, **headers: str) -> Handler:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text=text, status=status, headers=headers)

    return handler


@pytest.mark.req("C2")
async def test_an_answer_becomes_specs_that_remember_where_they_came_from() -> None:
    async with served(answering(TOOLS)) as source:
        (spec,) = await source.load()
        assert spec.name == "ping"
        assert spec.origin == Origin("http", source.name)
        assert not source.required


@pytest.mark.req("C2")
async def test_yaml_is_taken_too() -> None:
    async with served(answering("tools:\n  - {name: ping, provider: http}\n")) as source:
        assert [spec.name for spec in await source.load()] == ["ping"]


@pytest.mark.req("C2")
async def test_an_answer_that_has_not_changed_is_not_read_again() -> None:
    asked: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.headers.get("If-None-Match"))
        if asked[-1] == '"one"':
            return web.Response(status=304)
        return web.Response(text=TOOLS, headers={"ETag": '"one"'})

    async with served(handler) as source:
        first, second = await source.load(), await source.load()
        assert asked == [None, '"one"']
        assert first is second


@pytest.mark.req("C2")
async def test_an_answer_that_says_unchanged_before_there_was_one_is_refused() -> None:
    async with served(answering("", status=304)) as source:
        with pytest.raises(SourceUnavailable, match="answered 304"):
            await source.load()


@pytest.mark.req("C2")
async def test_a_bad_answer_keeps_the_mark_of_the_last_good_one() -> None:
    answers = iter([(TOOLS, "one"), ("[", "two"), (TOOLS, "three")])
    asked: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.headers.get("If-None-Match"))
        text, tag = next(answers)
        return web.Response(text=text, headers={"ETag": tag})

    async with served(handler) as source:
        await source.load()
        with pytest.raises(InvalidSpecs):
            await source.load()
        await source.load()
        assert asked == [None, "one", "one"]


@pytest.mark.req("C2")
async def test_an_endpoint_that_does_not_answer_is_given_up() -> None:
    async def handler(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with served(handler, seconds=0.2) as source:
        with pytest.raises(SourceUnavailable, match=r"did not answer within 0\.2 s"):
            await source.load()


@pytest.mark.req("C2")
async def test_an_endpoint_that_answers_drop_by_drop_is_given_up() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"[")
        await asyncio.Event().wait()
        return response

    async with served(handler, seconds=0.2) as source:
        with pytest.raises(SourceUnavailable, match="did not answer"):
            await source.load()


@pytest.mark.req("C2")
async def test_an_answer_that_is_too_large_is_refused_while_it_comes_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(4096):
            await response.write(b" " * 65_536)
            sent += 65_536
        return response

    monkeypatch.setattr(http, "MAX_BYTES", 100_000)
    async with served(handler) as source:
        with pytest.raises(SourceUnavailable, match="sends more than 100,000 bytes"):
            await source.load()
    assert sent < 4096 * 65_536, "the rest was never sent"


@pytest.mark.req("C2")
async def test_a_compressed_answer_is_not_unpacked() -> None:
    asked: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Accept-Encoding"))
        packed = gzip.compress(TOOLS.encode())
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with served(handler) as source:
        with pytest.raises(SourceUnavailable, match="compressed answer"):
            await source.load()
    assert asked == ["identity"]


@pytest.mark.req("C2")
async def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with served(handler) as source:
        with pytest.raises(SourceUnavailable, match="answered 302 instead of 200"):
            await source.load()
    assert asked == ["/tools"]


@pytest.mark.req("C2")
@pytest.mark.parametrize("status", [201, 204, 401, 404, 500, 503])
async def test_any_other_answer_is_no_tool_file(status: int) -> None:
    async with served(answering(TOOLS if status != 204 else "", status=status)) as source:
        with pytest.raises(SourceUnavailable, match=f"answered {status}"):
            await source.load()


@pytest.mark.req("C2")
@pytest.mark.parametrize("text", ["", "<html></html>", "[", "tools: 7", '[{"nam": "a"}]', "\x00"])
async def test_an_answer_that_is_no_tool_file_is_refused_with_the_address(text: str) -> None:
    async with served(answering(text)) as source:
        with pytest.raises(InvalidSpecs) as refused:
            await source.load()
        assert source.name in str(refused.value.problems[0])


@pytest.mark.req("C2")
async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    client = HttpClient(HERE, timeout=5)
    for url in ("http://127.0.0.1:1/", "http://[::1", "http://", "ftp://127.0.0.1/", "nonsense"):
        with pytest.raises(NotSent, match="Nothing was sent"):
            await HttpSource(url, client).load()
    await client.close()
    await client.close()


CODE = [
    '{"name": "a", "provider": "python", "config": {"module": "os", "function": "getcwd"}}',
    '{"name": "a", "provider": "shell", "config": {"command": "ls"}}',
    '{"name": "a", "config": {"module": "os", "function": "getcwd"}}',
    '{"name": "a", "module": "os", "function": "getcwd"}',
    '{"name": "a", "tool_type": "native", "implementation_config": {"module": "os"}}',
    '{"name": "a", "tool_type": "sandbox", "implementation_config": {"command": "ls"}}',
    '{"name": "a", "config": {"builtin": "echo"}}',
    '{"name": "a", "config": {"builtin": "", "module": "os", "function": "getcwd"}}',
]


@pytest.mark.req("C2")
@pytest.mark.parametrize("tool", CODE)
async def test_a_definition_from_the_wire_cannot_name_code(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(answering(f"[{tool}]")) as source:
        with pytest.raises(InvalidSpecs, match="runs code on this machine"):
            await source.load()
        # Without the guard it is loaded like any other.
        monkeypatch.setattr(remote, "LOCAL_ONLY", frozenset[str]())
        assert [spec.name for spec in await source.load()] == ["a"]


@pytest.mark.req("C2")
async def test_one_definition_that_names_code_refuses_the_whole_answer() -> None:
    answer = f'[{{"name": "ping", "provider": "http"}}, {CODE[0]}]'
    async with served(answering(answer)) as source:
        with pytest.raises(InvalidSpecs, match=r"a\.provider is python"):
            await source.load()


@pytest.mark.req("C2", "X5")
async def test_a_password_in_an_address_is_in_no_message() -> None:
    client = HttpClient(HERE, timeout=5)
    source = HttpSource("http://user:s3cret@127.0.0.1:1/tools?token=s3cret", client)
    with pytest.raises(SourceUnavailable) as refused:
        await source.load()
    await client.close()
    assert source.name == "http://127.0.0.1:1/tools?…"
    assert "s3cret" not in str(refused.value)


@pytest.mark.req("C2", "X5")
async def test_a_password_in_an_address_is_said_in_a_header() -> None:
    asked: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        return web.Response(text=TOOLS)

    async with served(handler) as source:
        url = source._url.replace("http://", "http://user:s%203cret@")  # pyright: ignore[reportPrivateUsage]
        client = HttpClient(HERE)
        await HttpSource(url, client).load()
        await client.close()
    assert asked == ["Basic dXNlcjpzIDNjcmV0"]


@pytest.mark.req("C2")
def test_an_address_is_shown_without_what_can_be_a_secret() -> None:
    assert shown("https://example.com/a/b") == "https://example.com/a/b"
    assert shown("https://u:p@example.com:8/a?b=c#d") == "https://example.com:8/a?…"
    assert shown("http://[::1") == "an address that cannot be read"


@pytest.mark.req("C2")
async def test_cookies_are_neither_kept_nor_sent() -> None:
    cookies: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        return web.Response(text=TOOLS, headers={"Set-Cookie": "track=1"})

    async with served(handler) as source:
        await source.load()
        await source.load()
    assert cookies == [None, None]


@pytest.mark.req("C2")
async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with served(answering(TOOLS)) as source:
        assert len(await source.load()) == 1
