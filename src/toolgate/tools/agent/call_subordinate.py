"""`call_subordinate`: hands a task to another agent of the operator's."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.agent.subordinate import asked
from toolgate.tools.means import Means

_LONGEST = 100_000


async def call_subordinate(means: Means, call: Call, *, agent: str, message: str) -> dict[str, Any]:
    """Hand it over, and give what comes back."""
    if not message.strip() or len(message) > _LONGEST:
        raise ToolError(
            f"The message is empty or longer than {_LONGEST:,} characters. Say what is to be done, "
            "with all that the other agent has to know."
        )
    reply = await asked(means, call, agent, message)
    return {"agent": agent, "reply": reply.text, "data": reply.data}
