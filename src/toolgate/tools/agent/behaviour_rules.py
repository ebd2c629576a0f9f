"""`behaviour_rules`: the rules that the agent has set for itself."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.rules import Rules
from toolgate.tools.means import Means


async def behaviour_rules(means: Means, call: Call) -> dict[str, Any]:
    """All of them, in the order they came."""
    rules = [one.told() for one in await Rules(means.shelf, call.caller).all()]
    return {"rules": rules, "count": len(rules)}
