"""`behaviour_withdraw`: a rule of the agent's no longer holds."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.rules import Rules
from toolgate.tools.means import Means


async def behaviour_withdraw(means: Means, call: Call, *, rule: str) -> dict[str, Any]:
    """Take it away; one that is not there is told as such."""
    return {"rule": rule, "withdrawn": await Rules(means.shelf, call.caller).remove(rule)}
