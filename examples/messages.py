"""What a model says, run and answered in its own words."""

import asyncio

from toolgate import Caller, Toolgate, Turn, tool


@tool(effect="pure")
async def find_customer(name: str) -> dict[str, str]:
    """Find a customer."""
    return {"id": "c-17", "name": name}


@tool(effect="irreversible")
async def send_letter(customer: str, text: str) -> str:
    """Send a letter."""
    return f"sent to {customer}"


OPENAI = {
    "role": "assistant",
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "find_customer", "arguments": '{"name": "Ann"}'},
        },
        {
            "id": "call_2",
            "type": "function",
            "function": {"name": "send_letter", "arguments": '{"customer": "c-17", "text": "He'},
        },
    ],
}
ANTHROPIC = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I will write to her."},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "send_letter",
            "input": {"customer": "c-17", "text": "Hello"},
        },
    ],
}
TEXT = """Sure, I'll look that up.
{'thoughts': ['who is it?'], 'tool_name': 'find_customer', 'tool_args': {'name': 'Bob',},}
"""


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(find_customer, send_letter)
        box = gate.toolbox(Caller(tenant="acme", agent="clerk"), Turn(group="t-1"))
        for message in (OPENAI, ANTHROPIC, TEXT):
            for reply in await box.run(message):
                print(reply)


asyncio.run(main())
