"""Calls that a person is asked about: who makes them, the tools, and what they wait for."""

from typing import Any

from toolgate import Caller, Turn, tool
from toolgate.call import Output

ANN = Caller(tenant="acme", agent="billing", user="ann")
BOT = Caller(tenant="acme", agent="billing")
TURN = Turn(group="t1")
# What the tools below did; forgotten before each test.
ran: list[Any] = []


@tool(effect="irreversible", requires_approval=True)
async def pay(to: str, amount: float = 1) -> str:
    """Pay somebody."""
    ran.append((to, amount))
    return f"paid {to}"


@tool(effect="irreversible", requires_confirmation=True, confirmation_prompt="Send it?")
async def send(text: str) -> str:
    """Send a text."""
    ran.append(text)
    return "sent"


@tool(effect="pure")
async def look() -> str:
    """Look."""
    ran.append("look")
    return "seen"


def id_of(output: Output) -> str:
    assert output.status == "pending_approval", output
    assert output.error is not None
    return output.error.details["approval_id"]


async def pending(gate: Any, name: str = "pay", caller: Caller = ANN, **args: Any) -> str:
    given = args or ({"to": "bob"} if name == "pay" else {"text": "hi"})
    return id_of(await gate.call(name, given, caller=caller, turn=TURN))
