"""Batches, chains and messages over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.gate.door import Door
from tests.house import open_gate
from tests.messages.spoken import Call, anthropic, openai
from toolgate import tool
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("X7", "X8")
ECHO = {"tool": "echo", "args": {"text": "hi"}}
TURN = {"group": "t-1", "id": "1"}

sent: list[str] = []


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a letter."""
    sent.append(to)
    return to


class Wire:
    def __init__(self, door: Door, key: str) -> None:
        self._door = door
        self._key = key

    async def post(
        self, path: str, body: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Any:
        named = tuple((name.lower(), value) for name, value in (headers or {}).items())
        answer = await self._door.ask("POST", path, self._key, body, named)
        assert answer.status == status, answer.text
        return answer.body

    async def get(self, path: str) -> int:
        return (await self._door.ask("GET", path, self._key)).status


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncGenerator[Wire]:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        await gate.tenancy.set_agent("acme", "clerk")
        key = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")
        yield Wire(Door(gate), key.secret)


async def test_a_batch_is_answered_with_an_output_for_each_call(wire: Wire) -> None:
    calls = [ECHO, {"tool": "nothing"}, {**ECHO, "when": "AFTER_STEP"}]
    told = await wire.post("/v1/batch", {"calls": calls, "turn": TURN})
    assert (told["ok"], told["stopped_at"]) == (False, 1)
    assert [one["status"] for one in told["outputs"]] == ["success", "error", "skipped"]
    assert told["outputs"][0]["data"] == {"text": "hi"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/batch", {"calls": [{"tool": "send", "args": {"to": "bob"}}]}),
        ("/v1/chain", {"steps": [ECHO]}),
        ("/v1/messages", {"message": openai(Call("c1", "send", {"to": "bob"}))}),
    ],
)
async def test_a_key_for_several_calls_is_refused_and_not_ignored(
    wire: Wire, path: str, body: dict[str, Any]
) -> None:
    sent.clear()
    refused = await wire.post(path, body, 400, headers={"Idempotency-Key": "k-1"})
    assert refused["code"] == "invalid_request"
    assert "/v1/call" in refused["detail"]
    assert sent == []
    await wire.post(path, body)
    assert sent == ([] if path == "/v1/chain" else ["bob"])


async def test_a_chain_is_answered_with_how_it_ran(wire: Wire) -> None:
    steps = [
        {**ECHO, "name": "first"},
        ECHO,
        {"tool": "echo", "args": {"text": "$steps.first.result.text"}},
    ]
    told = await wire.post("/v1/chain", {"steps": steps, "turn": TURN})
    assert told["ok"]
    assert told["waves"] == [[0, 1], [2]]
    assert told["steps"][2]["data"] == {"text": "hi"}
    refused = await wire.post("/v1/chain", {"steps": [ECHO, {"tool": "send"}]}, 400)
    assert (refused["code"], refused["step"]) == ("invalid_request", 1)


async def test_a_models_message_is_answered_with_the_next_one(wire: Wire) -> None:
    call = Call("c-1", "echo", {"text": "hi"})
    told = await wire.post("/v1/messages", {"message": openai(call), "turn": TURN})
    assert told == {
        "messages": [{"role": "tool", "tool_call_id": "c-1", "content": '{"text":"hi"}'}]
    }
    told = await wire.post("/v1/messages", {"message": anthropic(call)})
    assert told["messages"][0]["content"][0]["tool_use_id"] == "c-1"
    text = "```json\n{'tool_name': 'echo', 'tool_args': {'text': 'hi'}}\n```"
    told = await wire.post("/v1/messages", {"message": text})
    assert told["messages"] == [{"role": "user", "content": '{"text":"hi"}'}]


async def test_a_context_takes_tools_away_here_too(wire: Wire) -> None:
    calls = [{"tool": "send", "args": {"to": "bob"}}]
    assert (await wire.post("/v1/batch", {"calls": calls}))["ok"]
    narrowed = {"calls": calls, "context": {"read_only": True}}
    told = await wire.post("/v1/batch", narrowed)
    assert told["outputs"][0]["error"]["code"] == "tool_not_found"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/batch", {}),
        ("/v1/batch", {"calls": [ECHO], "trun": TURN}),
        ("/v1/batch", {"calls": [ECHO] * 11}),
        ("/v1/batch", {"calls": {"tool": "echo"}}),
        ("/v1/batch", {"calls": [ECHO], "turn": "t-1"}),
        ("/v1/chain", {"steps": [ECHO], "undo_on_failure": 1}),
        ("/v1/chain", {"steps": [ECHO], "mode": "fast"}),
        ("/v1/chain", {"steps": [ECHO], "mode": ["parallel"]}),
        ("/v1/chain", {"calls": [ECHO]}),
        ("/v1/messages", {}),
        ("/v1/messages", {"message": None}),
        ("/v1/messages", {"message": {"role": "user", "content": "hi"}}),
        ("/v1/messages", {"message": openai(), "messages": []}),
    ],
)
async def test_what_does_not_fit_is_refused(wire: Wire, path: str, body: object) -> None:
    told = await wire.post(path, body, 400)
    assert told["code"] == "invalid_request"
    assert await wire.get(path) == 405
