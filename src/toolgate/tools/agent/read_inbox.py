"""`read_inbox`: what was told to this agent and its user."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.agent.inbox import Inbox
from toolgate.tools.agent.notice import Notice
from toolgate.tools.means import Means


async def read_inbox(
    means: Means, call: Call, *, after: str = "", kind: str = "any", limit: int = 20
) -> dict[str, Any]:
    """The newest, in the order they came; with `after`, the next ones behind it."""
    found = [
        notice
        for notice in await Inbox(means.shelf, call.caller).read(after=after)
        if kind in {"any", notice.kind}
    ]
    shown = found[:limit] if after else found[-limit:]
    return {"notices": [_told(notice) for notice in shown], "count": len(found)}


def _told(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.id,
        "kind": notice.kind,
        "text": notice.text,
        "at": notice.at,
        "session": notice.session,
        "call_id": notice.call_id,
    }
