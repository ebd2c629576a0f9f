"""LangChain's tools, from `toolgate serve`. Needs `langchain-mcp-adapters`."""

import asyncio
import os

from langchain_mcp_adapters.callbacks import CallbackContext, Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitRequestParams, ElicitResult


async def ask(
    mcp_context: object, params: ElicitRequestParams, context: CallbackContext
) -> ElicitResult:
    """Put it to the person that the agent works for."""
    print("Ann is asked:", " ".join(params.message.split()))
    return ElicitResult(action="accept", content={"confirm": True})


async def main() -> None:
    client = MultiServerMCPClient(
        {
            "toolgate": {
                "transport": "streamable_http",
                "url": f"{os.environ['TOOLGATE_URL']}/mcp",
                "headers": {
                    "Authorization": f"Bearer {os.environ['TOOLGATE_KEY']}",
                    # Calls of one turn group that are equal happen once.
                    "Toolgate-Turn-Group": "t-19",
                },
            }
        },
        callbacks=Callbacks(on_elicitation=ask),
    )
    # What `create_agent(model, tools)` takes.
    tools = {tool.name: tool for tool in await client.get_tools()}
    print("may call:", *sorted(tools))
    for name in ("ship_order", "ship_order", "refund", "refund"):
        call = {"type": "tool_call", "id": name, "name": name, "args": {"order": "order-of-bob"}}
        message = await tools[name].ainvoke(call)
        print(f"{name}: {message.status} {message.text}")


asyncio.run(main())
