"""A server by its address: sessions, streams, credentials, and a server that goes and comes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.house import until
from tests.upstreams.bare import address
from tests.upstreams.misbehaving import Server, Writer, event, note, result, serving, text
from toolgate.errors import ProviderUnavailable, ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.upstreams.failures import BegunAnew
from toolgate.upstreams.upstream import Kind


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    made = HttpClient(Guard())
    yield made
    await made.close()


def methods(server: Server) -> list[str]:
    return [str(said.get("method", verb)) for verb, said, _ in server.heard]


@pytest.mark.req("P2")
async def test_the_newer_revision_is_tried_once_and_the_older_one_remembered(
    client: HttpClient,
) -> None:
    async with serving() as server:
        upstream = address(server.port, client)
        await upstream.open()
        await upstream.call("ok", {}, seconds=5)
        assert upstream.revision == "2025-11-25"
        assert methods(server)[:3] == ["server/discover", "initialize", "notifications/initialized"]
        headers = server.heard[-1][2]
        assert headers["mcp-protocol-version"] == "2025-11-25"
        assert headers["mcp-session-id"] in server.sessions
        await upstream.close()
        assert methods(server)[-1] == "DELETE"


@pytest.mark.req("P2")
async def test_a_session_that_expired_is_begun_anew_once_for_all_who_wait(
    client: HttpClient,
) -> None:
    async with serving() as server:
        upstream = address(server.port, client)
        await upstream.open()
        server.sessions.clear()
        server.begins.clear()

        def calling() -> "asyncio.Future[list[Any]]":
            calls = [upstream.call("ok", {}, seconds=5) for _ in range(4)]
            return asyncio.gather(*calls, return_exceptions=True)

        early, listing = calling(), asyncio.create_task(upstream.listed(Kind.TOOLS))
        await until(lambda: methods(server).count("initialize") == 2)
        # The new session has not begun yet: who comes now waits for it, and is not sent without.
        later, sent = calling(), len(server.heard)
        server.begins.set()
        found = [*await early, *await later]
        # It may be another server now. Whoever calls looks at its tools first.
        assert [type(one) for one in found] == [BegunAnew] * 8
        assert all(
            "mcp-session-id" in head for _, said, head in server.heard[sent:] if "id" in said
        )
        # What asks for no tool has its answer.
        assert len(await listing) == 1
        assert [one["content"][0]["text"] for one in await calling()] == ["ok"] * 4
        assert methods(server).count("initialize") == 2
        await upstream.close()


@pytest.mark.req("P2")
async def test_a_session_that_cannot_be_begun_anew_ends_the_connection(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.upstreams.keeper._FIRST_PAUSE", 0.01)
    async with serving() as server:
        upstream = address(server.port, client)
        await upstream.open()
        server.refuses = True
        server.sessions.clear()
        with pytest.raises(ToolgateError):
            await upstream.call("ok", {}, seconds=5)
        server.refuses = False
        await until(lambda: bool(server.sessions) and not upstream.problem)
        assert await upstream.call("ok", {}, seconds=5)
        await upstream.close()


@pytest.mark.req("P2")
async def test_a_server_whose_sessions_have_no_stream_is_begun_once(client: HttpClient) -> None:
    async with serving() as server:
        server.no_stream = 404
        upstream = address(server.port, client)
        await upstream.open()
        await until(lambda: "GET" in methods(server))
        for _ in range(20):
            await upstream.call("ok", {}, seconds=5)
        assert (methods(server).count("initialize"), methods(server).count("GET")) == (1, 1)
        await upstream.close()


@pytest.mark.req("P2")
@pytest.mark.parametrize("said", ["", "retry: 0\n\n"])
async def test_a_stream_that_ends_at_once_is_not_asked_for_without_a_pause(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    async def over(writer: Writer) -> None:
        writer.write(said.encode())
        await writer.drain()

    async with serving() as server:
        server.stream = over
        upstream = address(server.port, client)
        monkeypatch.setattr("toolgate.upstreams.hearing.asyncio.sleep", sleep)
        await upstream.open()
        await until(lambda: methods(server).count("GET") > 8)
        monkeypatch.undo()
        await upstream.close()
    waits = [one for one in pauses if one >= 0.5]
    assert len(waits) >= methods(server).count("GET") - 2
    # They grow, whatever the server says.
    assert max(waits) > 2


@pytest.mark.req("P2")
async def test_credentials_go_to_their_server_and_to_no_other(client: HttpClient) -> None:
    async with serving() as server, serving() as other:
        upstream = address(server.port, client, headers={"X-Key": "k-1"})
        await upstream.open()
        server.elsewhere = f"http://127.0.0.1:{other.port}/mcp"
        with pytest.raises(ProviderUnavailable, match="another address"):
            await upstream.call("led away", {}, seconds=5)
        # The control: they do go to their own server, and along a way that stays there.
        server.elsewhere = "/other"
        assert (await upstream.call("led away", {}, seconds=5))["content"]
        assert all(headers["x-key"] == "k-1" for _, _, headers in server.heard)
        assert other.heard == []
        await upstream.close()


@pytest.mark.req("P2")
async def test_a_server_that_goes_and_comes_back_is_found_again(client: HttpClient) -> None:
    told: list[Kind] = []
    async with serving() as server:
        port = server.port
        upstream = address(port, client)
        upstream.on_changed(told.append)
        await upstream.open()
        assert upstream.problem == ""
    with pytest.raises(ProviderUnavailable) as refused:
        await upstream.call("ok", {}, seconds=5)
    assert str(port) not in refused.value.message
    await until(lambda: bool(upstream.problem))
    told.clear()
    async with serving(port):
        await until(lambda: not upstream.problem)
        assert set(told) == set(Kind)
        assert (await upstream.call("ok", {}, seconds=5))["content"][0]["text"] == "ok"
        await upstream.close()


@pytest.mark.req("P2")
async def test_what_broke_off_in_the_middle_of_an_event_begins_with_it_again(
    client: HttpClient,
) -> None:
    told: list[Kind] = []
    async with serving() as server:

        async def stream(writer: Writer) -> None:
            last = server.heard[-1][2].get("last-event-id")
            if last is None:
                writer.write(b"retry: 1\nid: 7\ndata: x\n\nid: 8\ndata: {half")
            elif last == "7":
                writer.write(event(note("notifications/tools/list_changed")))
                await asyncio.Event().wait()
            elif last == "1":
                [id_] = [said["id"] for _, said, _ in server.heard if said.get("id", 0) > first]
                writer.write(b"id: 2\n" + event(result(id_, text("whole"))))

        first = 1_000
        server.stream = stream
        upstream = address(server.port, client)
        await upstream.open()
        upstream.on_changed(told.append)
        first = max(said.get("id", 0) for _, said, _ in server.heard)
        called = await upstream.call("stream breaks off", {}, seconds=10)
        assert called["content"][0]["text"] == "whole"
        await until(lambda: told == [Kind.TOOLS])
        await upstream.close()


@pytest.mark.req("P2")
async def test_who_gives_up_tells_the_server(client: HttpClient) -> None:
    async with serving() as server:
        upstream = address(server.port, client)
        await upstream.open()
        call = asyncio.create_task(upstream.call("no answer", {}, seconds=30))
        await until(lambda: methods(server)[-1] == "tools/call")
        id_ = server.heard[-1][1]["id"]
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "notifications/cancelled" in methods(server))
        told = server.heard[methods(server).index("notifications/cancelled")][1]
        assert told["params"]["requestId"] == id_
        await upstream.close()
