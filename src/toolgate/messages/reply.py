"""What came of a model's calls, in the words that it expects."""

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from toolgate.call import Output
from toolgate.messages.said import Message


def replies(message: Message, outputs: Sequence[Output]) -> list[dict[str, Any]]:
    """The messages to send back, one Output for each call in their order."""
    answered = list(zip(message.calls, outputs, strict=True))
    if message.format == "anthropic":
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": content(output),
                "is_error": not output.ok,
            }
            for call, output in answered
        ]
        # All results of a message have to be in the one that follows it.
        return [{"role": "user", "content": blocks}] if blocks else []
    if message.format == "responses":
        return [
            {"type": "function_call_output", "call_id": call.id, "output": content(output)}
            for call, output in answered
        ]
    if message.format == "openai":
        return [
            {"role": "tool", "tool_call_id": call.id, "content": content(output)}
            for call, output in answered
        ]
    return [{"role": "user", "content": content(output)} for _call, output in answered]


def content(output: Output) -> str:
    """A text for a model: the bare result, or a status with what to do about it."""
    if output.ok:
        return output.data if isinstance(output.data, str) else orjson.dumps(output.data).decode()
    told: dict[str, Any] = {"status": output.status}
    if output.data is not None:
        told["data"] = output.data
    if output.error is not None:
        told["error"] = error = msgspec.to_builtins(output.error)
        # How a person decides is for programs and people: a model could try to follow it.
        error["details"].pop("where", None)
    return orjson.dumps(told).decode()
