"""OpenAI's Chat Completions and Responses, as far as a loop over tools speaks to them."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tests.servers.model import Heard, OddError, Use, check_answered

Next = Callable[[Heard], str | Use]


def chat(headers: Mapping[str, str], request: dict[str, Any], says: Next) -> dict[str, Any]:
    """`POST /v1/chat/completions`."""
    _check(request, "messages")
    tools = {one["function"]["name"]: one["function"]["parameters"] for one in request["tools"]}
    asked: list[str] = []
    answered: list[str] = []
    results: list[str] = []
    rounds = 0
    for message in request["messages"]:
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
            results.append(_text(message["content"]))
            continue
        check_answered(asked, answered)
        asked = [call["id"] for call in message.get("tool_calls") or ()]
        answered = []
        if message["role"] == "user":
            rounds, results = 0, []
        elif message["role"] == "assistant":
            rounds += 1
    check_answered(asked, answered)
    said = says(Heard(tools, rounds, results))
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(said, str):
        message["content"] = said
    else:
        function = {"name": said.tool, "arguments": orjson.dumps(said.args).decode()}
        message["tool_calls"] = [{"id": f"call_{rounds}", "type": "function", "function": function}]
    reason = "stop" if isinstance(said, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def responses(headers: Mapping[str, str], request: dict[str, Any], says: Next) -> dict[str, Any]:
    """`POST /v1/responses`."""
    _check(request, "input")
    if any("name" not in one for one in request["tools"]):
        raise OddError("Missing required parameter: 'tools[0].name'.")
    tools = {one["name"]: one["parameters"] for one in request["tools"]}
    items = request["input"]
    asked = [one["call_id"] for one in items if one.get("type") == "function_call"]
    given = [one for one in items if one.get("type") == "function_call_output"]
    check_answered(asked, [one["call_id"] for one in given])
    said = says(Heard(tools, len(asked), [_text(one["output"]) for one in given]))
    number = len(asked)
    item: dict[str, Any]
    if isinstance(said, str):
        content: list[Any] = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        arguments = orjson.dumps(said.args).decode()
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": said.tool, "arguments": arguments}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": request["model"],
        "output": [item | {"status": "completed"}],
        "tools": request["tools"],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }


APIS = {"/v1/chat/completions": chat, "/v1/responses": responses}


def _check(request: dict[str, Any], spoken: str) -> None:
    for name in ("model", spoken, "tools"):
        if not request.get(name):
            raise OddError(f"Missing required parameter: {name!r}.")
    if request.get("stream"):
        raise OddError("This one does not stream.")
    if any(one.get("type") != "function" for one in request["tools"]):
        raise OddError("A tool here is a function.")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)
