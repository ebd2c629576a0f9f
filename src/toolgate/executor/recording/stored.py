"""A queued call that is on record with its answer is given that at once, and not queued again."""

from collections.abc import Coroutine
from typing import Any

from toolgate.call import Call, Output
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.recording import entries
from toolgate.executor.recording.replay import replayed
from toolgate.ledger.journal import Journal
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor


class Stored(Extension):
    """Looks, and begins nothing: what is not over, or has to be done again, goes on to a worker.

    Only of side effects, of which nothing is done twice; a pure call is simply run again.
    """

    priority = 390

    def __init__(self, journal: Journal, redactor: Redactor = PLAIN) -> None:
        self._journal = journal
        self._redactor = redactor

    def link(self, inner: Handler) -> Handler:
        """A call without a key is its own business."""
        looked = self._looked(inner)

        # Not a coroutine of its own: a call that has no twin does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            has_key = call.turn is not None or call.asked.key
            if not has_key or call.grant.spec.effect is Effect.PURE:
                return inner(call)
            return looked(call)

        return run

    def _looked(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            call, raw = entries.settled(call)
            intent = entries.intent(call, raw, self._redactor)
            found = await self._journal.answering(intent, may_start=call.may_start)
            return await inner(call) if found is None else replayed(found)

        return run
