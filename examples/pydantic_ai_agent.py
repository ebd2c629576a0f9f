"""An agent of Pydantic AI, with its tools from `toolgate serve`. Needs `pydantic-ai-slim[mcp]`.

A scripted model stands for yours, so that it runs without one.
"""

import asyncio
import os
import warnings
from typing import Any

from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelResponse,
    RunContext,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.mcp import CallToolFunc, MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel

# It is called: the newer revision of MCP asks with its answer, and needs no open connection.
warnings.filterwarnings("ignore", "`elicitation_handler` will never be called")


async def in_its_turn(
    run: RunContext[str], call: CallToolFunc, name: str, args: dict[str, Any]
) -> Any:
    """Calls of one turn group that are equal happen once."""
    return await call(name, args, metadata={"toolgate/turnGroup": run.deps})


async def ask(question: str, *_: object) -> dict[str, bool]:
    """Put it to the person that the agent works for."""
    print("Ann is asked:", " ".join(question.split()))
    return {"confirm": True}


def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Ship, refund, and pass on what the tools answered."""
    results = [part for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
    if len(results) == 2:
        return ModelResponse([TextPart(" ".join(part.model_response_str() for part in results))])
    tool = ("ship_order", "refund")[len(results)]
    return ModelResponse([ToolCallPart(tool, {"order": "order-of-bob"})])


async def main() -> None:
    tools = MCPToolset[str](
        f"{os.environ['TOOLGATE_URL']}/mcp",
        headers={"Authorization": f"Bearer {os.environ['TOOLGATE_KEY']}"},
        process_tool_call=in_its_turn,
        elicitation_handler=ask,
    )
    agent = Agent(FunctionModel(says), deps_type=str, toolsets=[tools])
    async with agent:
        for attempt in ("first", "again"):
            result = await agent.run("Ship Bob's order, and refund it.", deps="t-18")
            print(f"{attempt}:", result.output)


asyncio.run(main())
