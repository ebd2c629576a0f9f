"""Tools that leave a mark when they run, so that a test can tell whether they did."""

from typing import Any

from toolgate import ToolError, tool

CANARY = "canary-7d1f"
# Forgotten before each test.
ran: list[str] = []


@tool(effect="irreversible")
async def pay(amount: int) -> int:
    """Leave a mark."""
    ran.append("pay")
    return amount


@tool(effect="irreversible", requires_approval=True)
async def careful(amount: int) -> int:
    """Needs a person."""
    ran.append("careful")
    return amount


@tool(effect="irreversible")
async def breaks(how: str) -> Any:
    """Fails in the way that is asked for."""
    ran.append("breaks")
    if how == "tool_error":
        raise ToolError("out of stock")
    if how == "not_json":
        return object()
    raise ValueError(CANARY)
