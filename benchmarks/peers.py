"""What the same small tool costs elsewhere: plain Python and the ungoverned peers.

Each peer is one function that gets everything ready once and gives back the call to measure and
how to read its answer. None of them asks who calls, decides, limits or records: they are the
floor, not rivals doing the same work. A peer that is missing or broke its API is a row that says
so, never a row that is missing.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any, TypeAlias

from pydantic import validate_call

from benchmarks.measure import Call, Row, cpu_us, options, report

PLAIN = "plain await"
CHECKED = "pydantic validate_call"

# What a peer hands back: the call, and how the tool's own dict is read out of its answer.
Ready: TypeAlias = tuple[Call, Callable[[Any], Any]]
Peer: TypeAlias = Callable[[AsyncExitStack], Awaitable[Ready]]

_numbers = count()


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


def fresh() -> dict[str, Any]:
    """Arguments as a wire would bring them: a new dict each time, never twice the same."""
    return {"a": next(_numbers), "b": 3}


def same(answer: Any) -> Any:
    """The answer is already the tool's own dict."""
    return answer


async def plain(_: AsyncExitStack) -> Ready:
    return lambda: add(**fresh()), same


async def checked(_: AsyncExitStack) -> Ready:
    wrapped = validate_call(add)
    return lambda: wrapped(**fresh()), same


async def _pydantic_ai(wrappers: int) -> Ready:
    toolsets = import_module("pydantic_ai.toolsets")
    toolset = toolsets.FunctionToolset(tools=[add])
    for _ in range(wrappers):
        toolset = toolsets.WrapperToolset(toolset)
    context = import_module("pydantic_ai.tools").RunContext(
        deps=None,
        model=import_module("pydantic_ai.models.test").TestModel(),
        usage=import_module("pydantic_ai.usage").RunUsage(),
    )
    manager = import_module("pydantic_ai.tool_manager").ToolManager(toolset)
    manager = await manager.for_run_step(context)
    part = import_module("pydantic_ai.messages").ToolCallPart
    return lambda: manager.handle_call(part("add", fresh())), same


async def pydantic_ai(_: AsyncExitStack) -> Ready:
    return await _pydantic_ai(wrappers=0)


async def pydantic_ai_wrapped(_: AsyncExitStack) -> Ready:
    return await _pydantic_ai(wrappers=6)


async def langchain(_: AsyncExitStack) -> Ready:
    structured = import_module("langchain_core.tools").StructuredTool
    tool = structured.from_function(coroutine=add, name="add", description="Add two numbers.")
    return lambda: tool.ainvoke(fresh()), same


async def fastmcp(_: AsyncExitStack) -> Ready:
    server = import_module("fastmcp").FastMCP("bench")
    server.tool(add)
    return lambda: server.call_tool("add", fresh()), lambda answer: answer.structured_content


async def _mcp(stack: AsyncExitStack, mode: str) -> Ready:
    server = import_module("mcp.server.mcpserver").MCPServer("bench", log_level="WARNING")
    server.tool()(add)
    client = import_module("mcp").Client(server, mode=mode)
    client = await stack.enter_async_context(client)
    return lambda: client.call_tool("add", fresh()), lambda answer: answer.structured_content


async def mcp_direct(stack: AsyncExitStack) -> Ready:
    return await _mcp(stack, "auto")


async def mcp_framed(stack: AsyncExitStack) -> Ready:
    return await _mcp(stack, "legacy")


PEERS: dict[str, Peer] = {
    PLAIN: plain,
    CHECKED: checked,
    "pydantic-ai ToolManager": pydantic_ai,
    "pydantic-ai, 6 wrapper toolsets": pydantic_ai_wrapped,
    "langchain-core StructuredTool": langchain,
    "FastMCP server.call_tool": fastmcp,
    "MCP SDK in memory, direct": mcp_direct,
    "MCP SDK in memory, JSON-RPC": mcp_framed,
}


@dataclass(slots=True)
class Opened:
    """The peers that are ready to be measured, and rows for those that are not."""

    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    missing: dict[str, Row] = field(default_factory=dict[str, Row])


async def proven(peer: Peer, stack: AsyncExitStack) -> Call:
    """The peer's call, once it has given the right answer."""
    call, read = await peer(stack)
    start = next(_numbers)
    answer = read(await call())
    if answer != {"sum": start + 1 + 3}:
        raise ValueError(f"wrong answer {answer!r}")
    return call


@asynccontextmanager
async def opened(peers: dict[str, Peer]) -> AsyncGenerator[Opened]:
    """All peers, ready; the connections they hold are closed at the end."""
    ready = Opened()
    async with AsyncExitStack() as stack:
        for name, peer in peers.items():
            try:
                ready.calls[name] = await proven(peer, stack)
            except Exception as error:  # noqa: BLE001 - whatever a peer raises is its row
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                ready.missing[name] = Row(name=name, note=reason)
        yield ready


async def measured(peers: dict[str, Peer], *, rounds: int = 21, seconds: float = 0.04) -> list[Row]:
    """A row for each peer, in the order given."""
    async with opened(peers) as ready:
        rows = ready.missing | await cpu_us(ready.calls, rounds=rounds, seconds=seconds)
    return [rows[name] for name in peers]


def main() -> int:
    chosen = options("What one call of a trivial tool costs in other libraries.").parse_args()
    rows = asyncio.run(measured(PEERS))
    return report("CPU per call, ungoverned", rows, (), baseline=CHECKED, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
