"""`response`: says the agent's answer to its user."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.notice import said
from toolgate.tools.agent.telling import tell
from toolgate.tools.means import Means

_LONGEST = 100_000


async def response(means: Means, call: Call, *, text: str) -> dict[str, Any]:
    """Keep the answer, and tell it."""
    return await tell(means, call.caller, said(call, "response", text, most=_LONGEST))
