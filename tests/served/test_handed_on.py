"""Between a caller and another server stands the house: what either shows is not the other's."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.server.serving import Answer, Serving
from tests.upstreams.bare import Bare
from tests.upstreams.guarded import guarded
from tests.upstreams.test_answers import uncovered
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.settings.outward import McpServer
from toolgate.upstreams.cover import Cover
from toolgate.upstreams.dialing import connected

pytestmark = pytest.mark.req("P3", "V1", "V3")
OURS = "key-of-the-operator-4471"
# Where a caller could show something that is theirs.
THEIRS = {
    "Cookie": "session=of-the-caller-1",
    "X-Api-Key": "of-the-caller-2",
    "Proxy-Authorization": "Basic of-the-caller-3",
    "X-Forwarded-Authorization": "Bearer of-the-caller-4",
    "X-Forwarded-For": "192.0.2.77",
    "X-Auth-Request-Access-Token": "of-the-caller-5",
}
SETTINGS = """
[mcp.servers.far]
url = "{url}"
headers_env = {{ Authorization = "KEY_OF_FAR" }}
overlay = "far.yaml"
"""


def asked(server: Serving, key: str) -> list[Answer]:
    """The same call at both doors."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "authorization": "of-the-caller-6",
    }
    params: dict[str, Any] = {"name": "mcp__far__echo", "arguments": {}, "_meta": meta}
    told = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    head = THEIRS | {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "mcp__far__echo",
    }
    rest: dict[str, Any] = {"tool": "mcp:far:echo", "args": {}}
    return [
        server.ask("POST", "/v1/call", key=key, body=rest, headers=THEIRS),
        server.ask("POST", "/mcp", key=key, body=told, headers=head),
    ]


async def test_no_key_of_a_caller_goes_on_and_none_of_the_operators_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
    monkeypatch.setattr("tests.upstreams.misbehaving.TOOLS", tools)
    monkeypatch.setenv("KEY_OF_FAR", f"Bearer {OURS}")
    async with guarded() as far:
        far.good.add(OURS)
        (tmp_path / "far.yaml").write_text("tools: {echo: {effect: pure}}\n")
        (tmp_path / "toolgate.toml").write_text(SETTINGS.format(url=far.url))
        server = await asyncio.to_thread(Serving, tmp_path)
        try:
            key = server.greeting["keys"]["agent"]
            answers = await asyncio.to_thread(asked, server, key)
        finally:
            await asyncio.to_thread(server.stop)
        calls = far.asked("tools/call")
    assert [one.status for one in answers] == [200, 200], answers
    assert len(calls) == 2
    # The control: the server was shown the operator's, and said what it was shown.
    assert {one.headers["authorization"] for one in calls} == {f"Bearer {OURS}"}
    assert all("[secret]" in one.text for one in answers)
    for seen in far.server.seen:
        said = f"{dict(seen.headers)} {seen.target} {seen.body.decode()}"
        assert key not in said
        assert "of-the-caller" not in said
        assert "192.0.2.77" not in said
    assert not any(OURS in one.text for one in answers)


async def test_a_house_that_hands_on_what_it_is_shown_would_be_seen_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control: a caller's own in its headers and `_meta`, and nothing covered."""
    head = {"Authorization": "KEY_OF_FAR", "Cookie": "COOKIE_OF_THE_CALLER"}
    environ = {"KEY_OF_FAR": f"Bearer {OURS}", "COOKIE_OF_THE_CALLER": THEIRS["Cookie"]}
    client = HttpClient(Guard())
    async with guarded() as far:
        far.good.add(OURS)
        settings = McpServer(url=far.url, headers_env=head, timeout=5)
        it = connected("far", settings, client=client, sandbox=Bare(), environ=environ)
        await it.open()
        meta = {"authorization": "of-the-caller-6"}
        covered = await it.call("echo", {}, seconds=5, meta=meta)
        monkeypatch.setattr(Cover, "over", uncovered)
        bare = await it.call("echo", {}, seconds=5, meta=meta)
        await it.close()
        sent = far.asked("tools/call")[-1]
    await client.close()
    assert OURS not in str(covered)
    assert OURS in str(bare)
    assert "of-the-caller-1" in sent.headers["cookie"]
    assert b"of-the-caller-6" in sent.body
