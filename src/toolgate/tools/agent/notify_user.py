"""`notify_user`: tells the user something without ending the agent's turn."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.notice import said
from toolgate.tools.agent.telling import tell
from toolgate.tools.means import Means

_LONGEST = 10_000


async def notify_user(means: Means, call: Call, *, message: str) -> dict[str, Any]:
    """Keep the message, and tell it."""
    return await tell(means, call.caller, said(call, "notification", message, most=_LONGEST))
