"""Every way to a tool by MCP passes the gate exactly once."""

from typing import Any

import pytest

from tests.gate.test_attacks import Watched
from tests.mcp.house import MODES, House
from toolgate import Call, Question, tool

pytestmark = pytest.mark.req("V1", "G1", "X1")


@tool(effect="pure", resource="notes://{id}")
async def note(id: str) -> str:  # noqa: A002  the name in the URI
    """A note."""
    return id


@tool(effect="idempotent")
async def mark(id: str) -> str:  # noqa: A002  as above
    """Mark it."""
    return id


@tool(effect="pure")
async def ask(call: Call) -> str:
    """Ask first."""
    form: dict[str, Any] = {"type": "object", "properties": {}}
    question = Question("elicitation/create", {"message": "Go on?", "requestedSchema": form})
    return str((await call.ask({"go": question}))["go"]["action"])


@pytest.mark.parametrize("mode", MODES)
async def test_every_entry_passes_the_gate_exactly_once(
    house: House, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.gate.add(note, mark)
    async with house.client(mode) as client:
        watched = Watched(monkeypatch)
        for _cold_then_warm in range(2):
            for name in ("note", "mark"):
                assert not (await client.call_tool(name, {"id": "1"})).is_error
                watched.once()
            assert (await client.read_resource("notes://1")).contents
            watched.once()
        await client.list_tools()
        await client.list_resources()
        await client.read_resource("focal://tools/agent/billing/enabled")
        assert watched.log == [], "what only looks hands nothing to the executor"


async def test_each_round_of_questions_is_decided_anew(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.gate.add(ask)
    meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    watched = Watched(monkeypatch)
    _status, asked = await house.post("tools/call", {"name": "ask"}, meta=meta)
    watched.once()
    again: dict[str, Any] = {
        "name": "ask",
        "requestState": asked["result"]["requestState"],
        "inputResponses": {"go": {"action": "accept", "content": {}}},
    }
    _status, done = await house.post("tools/call", again, meta=meta)
    watched.once()
    assert done["result"]["content"] == [{"type": "text", "text": "accept"}]
    await house.gate.tenancy.by("test").set_tenant_tool("acme", "ask", enabled=False)
    _status, refused = await house.post("tools/call", again, meta=meta)
    assert "no tool 'ask'" in refused["error"]["message"]
