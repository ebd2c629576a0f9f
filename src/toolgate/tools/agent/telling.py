"""How a notice is told: kept first, then sent wherever the settings say."""

from typing import Any

from toolgate.caller import Caller
from toolgate.tools.agent.inbox import Inbox
from toolgate.tools.agent.notice import Notice
from toolgate.tools.agent.outlet import outlets
from toolgate.tools.means import Means


async def tell(means: Means, caller: Caller, notice: Notice) -> dict[str, Any]:
    """What became of it. An outlet that does not take it is told of; the inbox has it."""
    await Inbox(means.shelf, caller).put(notice)
    delivered, problems = ["inbox"], list[str]()
    for outlet in outlets(means):
        problem = await outlet.send(notice)
        if problem:
            problems.append(f"The {outlet.name} did not take it: {problem}.")
        else:
            delivered.append(outlet.name)
    told: dict[str, Any] = {"id": notice.id, "at": notice.at, "delivered": delivered}
    if problems:
        told["note"] = " ".join([*problems, "It waits in the inbox; do not say it again."])
    return told
