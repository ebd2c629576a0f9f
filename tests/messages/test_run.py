"""A model's message run through the gate, and answered in its own words."""

import json
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.messages.spoken import Call, anthropic, openai, responses, written
from toolgate import Caller, ToolError, Turn, tool
from toolgate.call import Failure, Output
from toolgate.messages.reply import content
from toolgate.spec.names import for_model
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("X8")
ME = Caller(tenant="acme", agent="clerk")
TURN = Turn(group="t-1")
sent: list[str] = []


@tool(effect="pure")
async def greet(name: str) -> dict[str, str]:
    """Greet somebody."""
    return {"greeting": f"Hello {name}"}


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a letter."""
    sent.append(to)
    return f"sent to {to}"


@tool(effect="pure")
async def fail() -> None:
    """Fail on purpose."""
    raise ToolError("There are only three left.", left=3)


@tool(name="files:read", effect="pure")
async def read_file(path: str) -> str:
    """Read a file."""
    return path


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


async def run(message: object, turn: Turn | None = TURN) -> list[dict[str, Any]]:
    async with in_memory(greet, send, fail, read_file) as house:
        return await house.toolbox(ME, turn).run(message)


GREET, SEND = Call("c-1", "greet", {"name": "Ann"}), Call("c-2", "send", {"to": "Bob"})


async def test_each_model_is_answered_as_it_expects() -> None:
    assert await run(openai(GREET, SEND)) == snapshot(
        [
            {"role": "tool", "tool_call_id": "c-1", "content": '{"greeting":"Hello Ann"}'},
            {"role": "tool", "tool_call_id": "c-2", "content": "sent to Bob"},
        ]
    )
    assert await run(responses(GREET)) == snapshot(
        [
            {
                "type": "function_call_output",
                "call_id": "c-1",
                "output": '{"greeting":"Hello Ann"}',
            }
        ]
    )
    assert await run(anthropic(GREET, Call("c-2", "fail", {}))) == snapshot(
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c-1",
                        "content": '{"greeting":"Hello Ann"}',
                        "is_error": False,
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "c-2",
                        "content": '{"status":"error","error":{"code":"tool_error","message":'
                        '"There are only three left.","retryable":false,"details":{"left":3}}}',
                        "is_error": True,
                    },
                ],
            }
        ]
    )
    assert await run(written(GREET)) == snapshot(
        [{"role": "user", "content": '{"greeting":"Hello Ann"}'}]
    )


async def test_a_model_is_not_told_how_a_person_decides() -> None:
    where = {"command": "toolgate approvals approve apr_1", "http": "POST /v1/approvals/…"}
    details = {"approval_id": "apr_1", "where": where}
    failure = Failure(code="approval_pending", message="Wait.", details=details)
    output = Output(status="pending_approval", error=failure)
    told = json.loads(content(output))
    assert told["error"]["details"] == {"approval_id": "apr_1"}
    assert output.to_machine()["error"]["details"]["where"] == where, "programs are told"


async def test_a_message_without_calls_has_no_answer() -> None:
    assert await run("Hello.") == []
    assert await run({"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}) == []


async def test_what_is_refused_or_not_clear_is_told_and_the_rest_runs() -> None:
    message = openai(
        Call("c-1", "no_such", {}), Call("c-2", "greet", {"nam": 1}), Call("c-3", *SEND[1:])
    )
    message["tool_calls"].append(
        {"id": "c-4", "function": {"name": "send", "arguments": '{"to": "Eve", "to": "Bob"}'}}
    )
    answers = await run(message)
    assert [one["tool_call_id"] for one in answers] == ["c-1", "c-2", "c-3", "c-4"]
    codes = [
        json.loads(one["content"])["error"]["code"]
        for one in answers
        if one["content"].startswith("{")
    ]
    assert codes == ["tool_not_found", "invalid_arguments", "invalid_request"]
    assert "twice" in answers[3]["content"]
    assert sent == ["Bob"]


async def test_a_call_that_is_not_clear_never_runs_and_the_model_is_told_how_to_write_it() -> None:
    [answer] = await run('{"tool_name":"send","tool_args":{"to":"Bob"')
    told = json.loads(answer["content"])["error"]
    assert told["code"] == "invalid_request"
    assert "tool_args" in told["message"]
    assert sent == []
    assert await run('{"tool_name":"send","tool_args":{"to":"Bob"}}')
    assert sent == ["Bob"]


async def test_tools_are_called_by_the_names_that_the_model_was_given() -> None:
    named = for_model("files:read")
    assert named != "files:read"
    [answer] = await run(openai(Call("c-1", named, {"path": "/a"})))
    assert answer["content"] == "/a"


async def test_the_same_business_in_one_turn_happens_once_whatever_its_ids() -> None:
    twice = openai(SEND, Call("c-3", *SEND[1:]))
    answers = await run(twice)
    assert [one["content"] for one in answers] == ["sent to Bob", "sent to Bob"]
    assert sent == ["Bob"]
    sent.clear()
    await run(twice, turn=None)
    assert sent == ["Bob", "Bob"]


async def test_a_message_that_is_delivered_again_changes_nothing() -> None:
    async with in_memory(greet, send) as house:
        first = await house.toolbox(ME, TURN).run(openai(SEND))
        again = await house.toolbox(ME, TURN).run(openai(SEND))
    assert first == again
    assert sent == ["Bob"]


async def test_a_planner_is_told_what_it_has_to_know_of_a_tool() -> None:
    async with in_memory(greet, send) as house:
        box = house.toolbox(ME, TURN)
        known = box.metadata("send")
        assert known is not None
        assert (known.is_irreversible, known.is_safe_to_retry) == (True, False)
        assert (known.requires_confirmation, known.compensation_tool) == (False, "")
        assert box.metadata("no_such") is None
