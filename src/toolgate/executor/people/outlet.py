"""No side effect whose word could not be kept: where too many events wait, nothing new begins."""

from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.call import Call, Output
from toolgate.errors import Overloaded
from toolgate.executor.extension import Extension, Handler
from toolgate.spec.effect import Effect


class Outlet(Extension):
    """Refuses side effects while `is_full` says so. Only where events are sent to somebody."""

    priority = 340

    def __init__(self, is_full: Callable[[], bool]) -> None:
        self._is_full = is_full

    def link(self, inner: Handler) -> Handler:
        """Asks a flag, nothing more."""
        is_full, pure = self._is_full, Effect.PURE

        def run(call: Call) -> Coroutine[Any, Any, Output]:
            if is_full() and call.grant.spec.effect is not pure and call.may_start:
                raise Overloaded(
                    f"Too many events wait to be sent to [events] url, so {call.spec.name!r} could "
                    "not tell of itself. Nothing ran: look at that address, and try again.",
                    retry_after=5,
                )
            return inner(call)

        return run
