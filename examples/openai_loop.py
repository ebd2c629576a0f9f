"""A plain loop over OpenAI's API, in which a turn that is tried again acts once. Needs `openai`."""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from toolgate import Caller, Toolgate, Turn, tool

parcels: list[str] = []


@tool(effect="pure")
async def find_order(customer: str) -> dict[str, str]:
    """Find a customer's last order."""
    return {"order": f"order-of-{customer}"}


@tool(effect="irreversible")
async def ship_order(order: str) -> str:
    """Ship an order."""
    parcels.append(order)
    return f"{order} is parcel {len(parcels)}"


async def answer(gate: Toolgate, question: str, turn: Turn) -> str | None:
    """Let the model call tools until it has something to say."""
    box = gate.toolbox(Caller(tenant="acme", agent="support", user="ann"), turn)
    messages: list[Any] = [{"role": "user", "content": question}]
    async with AsyncOpenAI() as client:
        while True:
            completion = await client.chat.completions.create(
                model="gpt-5", messages=messages, tools=box.tools(format="openai")
            )
            message = completion.choices[0].message
            results = await box.run(message)
            if not results:
                return message.content
            messages += [message, *results]


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(find_order, ship_order)
        for attempt in ("first", "again"):
            print(f"{attempt}:", await answer(gate, "Ship Bob's order.", Turn(group="t-1")))
        print("parcels:", parcels)


asyncio.run(main())
