"""Whether a server that left a request without an answer is still there."""

import asyncio

from toolgate.upstreams.failures import StuckError
from toolgate.upstreams.greeting import DISCOVER
from toolgate.upstreams.wire import Wire

# The newer revision has no ping; what every server of it answers is what it is.
_PING = "ping"
# How a request ends that its server may never have looked at. Who gives up need not say why.
LEFT = (TimeoutError, asyncio.CancelledError, StuckError)


class Pulse:
    """Asks a server that is in doubt, one question at a time. One that says nothing is given up."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: how long a server may say nothing at all."""
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def doubt(self, wire: Wire, *, is_modern: bool) -> None:
        """It left a request without an answer: a slow tool, or a server that hangs."""
        is_asked = self._task is not None and not self._task.done()
        if not is_asked and not self._is_closed and not wire.gone.done():
            self._task = asyncio.create_task(self._felt(wire, DISCOVER if is_modern else _PING))

    async def close(self) -> None:
        """Nobody wants to know any more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _felt(self, wire: Wire, method: str) -> None:
        signs = wire.signs
        try:
            await wire.ask(method, {}, seconds=self._seconds)
        except (TimeoutError, StuckError):
            # One that works on many calls in turn comes to this question late, and answers others.
            if wire.signs == signs:
                wire.lose(f"it hangs: it has not said a word for {self._seconds:g} s, when asked.")
        except Exception:  # noqa: BLE001  whatever it says instead, it is there; or gone already
            return
