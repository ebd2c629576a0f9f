"""Calls that a worker brings from the queue: run as their callers would, or given up on record."""

from collections.abc import Callable
from contextlib import nullcontext

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Output
from toolgate.errors import OutOfTime
from toolgate.executor.aftercare.probing import Perform
from toolgate.executor.recording.replay import replayed
from toolgate.executor.resilience.deadline import NEVER, within
from toolgate.executor.trace.trace import Spans
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import OPEN, State
from toolgate.queue.message import Request
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import Redactor
from toolgate.spec.tool import ToolSpec

_MS = 1_000_000


class Deliveries:
    """What a worker can do with a call."""

    def __init__(
        self,
        perform: Perform,
        spec_of: Callable[[str], ToolSpec | None],
        journal: Journal,
        spans: Spans | None,
        redactor: Redactor,
    ) -> None:
        self._perform = perform
        self._spec_of = spec_of
        self._journal = journal
        self._spans = spans
        self._redactor = redactor

    async def run(self, request: Request) -> Output:
        """Under its own id: decided anew, and once by the ledger."""
        spans = self._spans
        traced = nullcontext() if spans is None else spans.continued(request.trace)
        with traced, within(_until_ns(request)):
            output = await self._perform(
                request.tool,
                request.args,
                caller=request.caller,
                turn=request.turn_given,
                asked=request.asked,
            )
        return self._kept(output)

    def _kept(self, output: Output) -> Output:
        """It is stored, and sent, until its caller has it: without secrets, as a repeated one."""
        raw = orjson.dumps(output.data)
        clean = self._redactor.raw(raw)
        if clean is raw:
            return output
        return msgspec.structs.replace(output, data=orjson.loads(clean))

    async def expire(self, request: Request) -> Output | None:
        """It is not run, since its time is over. What is known of it, where it was begun before."""
        spec, caller = self._spec_of(request.tool), request.caller
        found = await self._journal.give_up(
            Entry(
                request.id,
                request.tool,
                "" if spec is None else spec.fingerprint,
                Effect.IRREVERSIBLE if spec is None else spec.effect,
                caller.tenant,
                caller.agent,
                caller.user,
                caller.persona,
                caller.session,
                "" if request.turn is None else request.turn.group,
                request.kind,
                b"",
                clock.unix_ns(),
                State.EXPIRED,
                error_code=OutOfTime.code,
                error_message="It waited in the queue for longer than it may.",
            )
        )
        if found.state is State.EXPIRED:
            return None
        if found.state in OPEN:
            # Whoever had it has not been heard of: whether they came to an end is not known.
            found = msgspec.structs.replace(found, state=State.UNKNOWN)
        return replayed(found)


def _until_ns(request: Request) -> int:
    """On this process's own clock: until when somebody waits for it."""
    if not request.until_ms:
        return NEVER
    return clock.monotonic_ns() + request.until_ms * _MS - clock.unix_ns()
