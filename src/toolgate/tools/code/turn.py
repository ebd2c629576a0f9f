"""The turn of a caller's program: each may take half a gigabyte, so that only so many run at a
time, and of one tenant half of those.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from toolgate.call import Call
from toolgate.executor.resilience.deadline import is_overdue, out_of_time
from toolgate.tools.means import Means


@contextlib.asynccontextmanager
async def turn(means: Means, call: Call) -> AsyncGenerator[None]:
    """Wait for it. Who has no time left by then has begun nothing."""
    try:
        whose = await means.programs.take()
    except asyncio.CancelledError as error:
        if is_overdue(error):
            raise out_of_time(call) from None
        raise
    try:
        yield
    finally:
        means.programs.leave(whose)
