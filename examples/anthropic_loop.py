"""A plain loop over Anthropic's API, with a tool that a person confirms. Needs `anthropic`."""

import asyncio
from typing import Any

from anthropic import AsyncAnthropic

from toolgate import Caller, Toolgate, Turn, tool

ANN = Caller(tenant="acme", agent="support", user="ann")


@tool(effect="irreversible", requires_confirmation=True, confirmation_prompt="Refund it?")
async def refund(order: str) -> str:
    """Give the money for an order back."""
    return f"{order} is refunded"


async def answer(gate: Toolgate, question: str, turn: Turn) -> str:
    """Let the model call tools until it has something to say."""
    box = gate.toolbox(ANN, turn)
    messages: list[Any] = [{"role": "user", "content": question}]
    async with AsyncAnthropic() as client:
        while True:
            message = await client.messages.create(
                model="claude-opus-4-8",
                max_tokens=1024,
                messages=messages,
                tools=box.tools(format="anthropic"),
            )
            results = await box.run(message)
            if not results:
                return "".join(block.text for block in message.content if block.type == "text")
            messages += [{"role": "assistant", "content": message.content}, *results]


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(refund)
        turn = Turn(group="t-1")
        print(await answer(gate, "Refund Bob's order.", turn))

        for asked in await gate.approvals.list(ANN):
            print("Ann is asked:", asked.prompt, asked.args.decode())
            await gate.approvals.approve(asked.id, by=ANN)
        print(await answer(gate, "Refund Bob's order.", turn))


asyncio.run(main())
