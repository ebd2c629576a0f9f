"""A request that is answered in rounds: the server asks, the answers go back with it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from toolgate.asked import Line
from toolgate.upstreams.asking import Asking
from toolgate.upstreams.failures import BrokenError
from toolgate.upstreams.message import Json

_MOST_ROUNDS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


async def answered_in_rounds(
    result: Json, again: Callable[[Json], Awaitable[Json]], asking: Asking, line: Line | None
) -> Json:
    """The result that asks no more. `again` makes the request once more, with what is added."""
    pause = _FIRST_PAUSE
    before: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        kind = result.get("resultType", "complete")
        if kind == "complete":
            return result
        if kind != "input_required":
            raise BrokenError(f"its result is of a kind that is not known here ({kind!s:.40}).")
        asked, state = result.get("inputRequests"), result.get("requestState")
        more: Json = {}
        if type(asked) is dict and asked:
            more["inputResponses"] = await asking.inputs(cast("Json", asked), line, before)
        else:
            # It only wants to be asked again.
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        if type(state) is str:
            more["requestState"] = state
        result = await again(more)
    raise BrokenError(f"it asked for more in {_MOST_ROUNDS} rounds, and gave no result.")
