"""Calls as each vendor's models say them."""

import json
from typing import Any, NamedTuple


class Call(NamedTuple):
    id: str
    tool: str
    args: dict[str, Any]


def openai(*calls: Call) -> dict[str, Any]:
    listed = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.args)},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def responses(*calls: Call) -> dict[str, Any]:
    listed = [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.tool,
            "arguments": json.dumps(call.args),
            "status": "completed",
        }
        for call in calls
    ]
    return {"object": "response", "output": [{"type": "reasoning", "summary": []}, *listed]}


def anthropic(*calls: Call) -> dict[str, Any]:
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.args} for call in calls
    ]
    return {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, *uses]}


def written(call: Call) -> str:
    body = json.dumps({"thoughts": ["…"], "tool_name": call.tool, "tool_args": call.args})
    return f"I'll look that up.\n```json\n{body}\n```"
