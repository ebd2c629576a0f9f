"""Anthropic's Messages, as far as a loop over tools speaks to them."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.servers.model import Heard, OddError, Use, check_answered


def messages(
    headers: Mapping[str, str], request: dict[str, Any], says: Callable[[Heard], str | Use]
) -> dict[str, Any]:
    """`POST /v1/messages`."""
    if "anthropic-version" not in headers:
        raise OddError("anthropic-version: header is required")
    for name in ("model", "max_tokens", "messages", "tools"):
        if not request.get(name):
            raise OddError(f"{name}: Field required")
    tools = {one["name"]: one["input_schema"] for one in request["tools"]}
    asked: list[str] = []
    results: list[str] = []
    rounds = 0
    for message in request["messages"]:
        blocks: list[Any] = message["content"] if isinstance(message["content"], list) else []
        given = [one for one in blocks if one["type"] == "tool_result"]
        check_answered(asked, [one["tool_use_id"] for one in given])
        asked = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if message["role"] == "assistant":
            rounds += 1
        elif given:
            results += [one["content"] for one in given]
        else:
            rounds, results = 0, []
    if asked:
        raise OddError(f"`tool_use` ids were found without `tool_result` blocks: {asked}")
    said = says(Heard(tools, rounds, results))
    if isinstance(said, str):
        block: dict[str, Any] = {"type": "text", "text": said}
    else:
        block = {"type": "tool_use", "id": f"toolu_{rounds}", "name": said.tool, "input": said.args}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [block],
        "stop_reason": "end_turn" if isinstance(said, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


APIS = {"/v1/messages": messages}
