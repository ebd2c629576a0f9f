"""Where memories are kept, as the settings say, and what is asked of them."""

import math

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.memory.memories import Memories
from toolgate.tools.memory.shelved import Shelved
from toolgate.tools.memory.somabrain import SomaBrain

_LONGEST_QUERY = 2_000


def memories_of(means: Means, caller: Caller) -> Memories:
    """Those of the persona or agent that calls."""
    if means.settings.memory.url:
        return SomaBrain(means, caller)
    return Shelved(means, caller)


def check(query: str, threshold: float) -> None:
    """A question that can be asked."""
    if not query.strip():
        raise ToolError("The query is empty. Say in a few words what to look for.")
    if len(query) > _LONGEST_QUERY:
        raise ToolError(f"A query has at most {_LONGEST_QUERY:,} characters. Shorten it.")
    if not math.isfinite(threshold) or not 0 <= threshold <= 1:
        raise ToolError("A threshold is a number from 0 to 1, such as 0.7.")
