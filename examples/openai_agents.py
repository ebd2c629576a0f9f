"""An agent of OpenAI's Agents SDK, with its tools from `toolgate serve`. Needs `openai-agents`."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp, MCPToolMetaContext
from openai import AsyncOpenAI


def in_its_turn(call: MCPToolMetaContext) -> dict[str, str]:
    """Calls of one turn group that are equal happen once."""
    return {"toolgate/turnGroup": call.run_context.context}


async def main() -> None:
    set_tracing_disabled(disabled=True)
    server = MCPServerStreamableHttp(
        {
            "url": f"{os.environ['TOOLGATE_URL']}/mcp",
            "headers": {"Authorization": f"Bearer {os.environ['TOOLGATE_KEY']}"},
        },
        tool_meta_resolver=in_its_turn,
    )
    async with server, AsyncOpenAI() as client:
        agent = Agent(
            name="support",
            model=OpenAIChatCompletionsModel("gpt-5", client),
            mcp_servers=[server],
        )
        for attempt in ("first", "again"):
            result = await Runner.run(agent, "Ship Bob's order.", context="t-17")
            print(f"{attempt}:", result.final_output)


asyncio.run(main())
