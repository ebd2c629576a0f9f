"""A far side that fails now and then, a stream that is cut off, and a tool that is left alone."""

import asyncio
import logging
from collections.abc import AsyncIterator

from toolgate import Caller, CallRefused, ToolError, Toolgate, tool

answers = iter(["busy", "busy", "21.5 °C"])


@tool(effect="pure", retry={"attempts": 3, "base_delay": 0.01})
async def weather(city: str) -> str:
    """Ask a weather station, which is busy at times."""
    answer = next(answers)
    if answer == "busy":
        raise ToolError("The station is busy.", retryable=True)
    return f"{city}: {answer}"


@tool(effect="pure", timeout=0.1)
async def poem() -> AsyncIterator[str]:
    """A poem, line by line."""
    yield "Roses are red\n"
    yield "Violets are blue\n"
    await asyncio.Event().wait()  # the third line never comes


@tool(effect="pure")
async def broken() -> None:
    """A tool with a bug."""
    raise ValueError


async def main() -> None:
    logging.disable()
    async with Toolgate.open() as gate:
        gate.add(weather, poem, broken)
        me = Caller(tenant="acme", agent="guide")
        print((await gate.call("weather", {"city": "Bern"}, caller=me)).data)
        cut = await gate.call("poem", caller=me)
        print(cut.status, repr(cut.data))
        try:
            for _ in range(20):
                await gate.call("broken", caller=me)
        except CallRefused as refused:
            print(refused.code)


asyncio.run(main())
