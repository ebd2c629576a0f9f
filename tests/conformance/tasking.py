"""The suite's tools that take long: their clients get a task for them, once they have waited."""

import asyncio

from tests.conformance.asking import FLAG, NAME, ROOTS, form
from toolgate import Call, ToolError, tool

# How long a client waits before it gets a task; and more than that.
AFTER_S = 0.5
LONG_S = 0.7


@tool(effect="pure")
def greet(name: str) -> str:
    """Greets at once: never a task."""
    return f"Hello, {name}!"


@tool(effect="pure", timeout=90)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes so many seconds."""
    await asyncio.sleep(max(seconds, LONG_S) if seconds else 0)
    return f"Computed {label} for {seconds} seconds."


@tool(effect="pure")
async def failing_job() -> str:
    """Fails, as a tool does."""
    await asyncio.sleep(LONG_S)
    raise ToolError("This job always fails.")


@tool(effect="pure")
async def protocol_error_job(call: Call) -> str:
    """Asks what the suite's client cannot answer: no fault of the tool's."""
    await asyncio.sleep(LONG_S)
    return f"Roots: {await call.ask({'roots': ROOTS})}"


@tool(effect="pure")
async def confirm_delete(filename: str, call: Call) -> str:
    """Asks before it would delete."""
    await asyncio.sleep(LONG_S)
    asked = form(f"Delete {filename}?", {"confirm": FLAG}, "confirm")
    return f"Answered: {(await call.ask({'confirm': asked}))['confirm']['action']}"


@tool(effect="pure")
async def multi_input(call: Call) -> str:
    """Asks two things at once."""
    await asyncio.sleep(LONG_S)
    said = await call.ask({"first": NAME, "second": NAME})
    return f"Answered: {sorted(said)}"


@tool(effect="pure")
async def test_tool_with_task(call: Call) -> str:
    """Asks for a name, and then takes long."""
    said = (await call.ask({"user_name": NAME}))["user_name"]
    await asyncio.sleep(LONG_S)
    return f"Hello, {said['content']['name']}!"
