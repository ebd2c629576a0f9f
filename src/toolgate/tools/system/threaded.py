"""Work with files, off the loop: in threads for nothing else, with a share for each tenant.

What waits elsewhere, for a name or an operator's own function, takes none of them.
"""

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from toolgate.executor.resilience.places import Places

P = ParamSpec("P")
T = TypeVar("T")
_MOST, _EACH, _WAITING = 16, 8, 1_000
_THREADS = ThreadPoolExecutor(_MOST, thread_name_prefix="toolgate-file")
_places: "WeakKeyDictionary[asyncio.AbstractEventLoop, Places]" = WeakKeyDictionary()


async def threaded(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """What it gives. Whoever stops waiting leaves its thread taken until the work is over."""
    loop = asyncio.get_running_loop()
    places = _places.setdefault(loop, Places(_MOST, each=_EACH, waiting=_WAITING))
    whose = await places.take()
    work = functools.partial(contextvars.copy_context().run, function, *args, **named)
    job: Future[T] = _THREADS.submit(work)

    def left(_job: Future[T]) -> None:
        # The loop may be gone; then nobody waits for the place.
        if not loop.is_closed():
            loop.call_soon_threadsafe(places.leave, whose)

    job.add_done_callback(left)
    return await asyncio.wrap_future(job)
