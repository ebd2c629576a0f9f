"""The outermost link: every call is counted, told to the log, and on record however it ends."""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from toolgate import clock
from toolgate.asked import Asked
from toolgate.call import Call, Output, Turn
from toolgate.caller import Caller
from toolgate.errors import (
    ApprovalPending,
    CallFailed,
    CallRefused,
    InvalidArguments,
    StoreError,
    Superseded,
    ToolError,
    ToolgateError,
)
from toolgate.executor.aftercare.probing import Perform
from toolgate.executor.answer import answer, is_answer
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.outcome import comes_again
from toolgate.executor.recording import entries
from toolgate.executor.trace.meter import BOUNDS, Meter
from toolgate.ledger.journal import Journal, Outdated
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect, Execution

# What the lines of each call are told by.
calls = logging.getLogger("toolgate.calls")
_log = logging.getLogger("toolgate.journal")
_STARTED = "tool_execution_started"
_COMPLETED = "tool_execution_completed"
_PURE = Effect.PURE
_QUEUED = Execution.QUEUED
_INFO = logging.INFO


class Span(Protocol):
    """A stretch of a call, as a tracer keeps it."""

    def tell(self, **attributes: str | bool) -> None:
        """Add to what is known about it."""
        ...


class Spans(Protocol):
    """A tracer. Where there is none, nothing of it is in the chain."""

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Span]:
        """A stretch that lasts as long as the block, below the one around it."""
        ...

    def continued(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """What begins in the block belongs to the trace that a request came with."""
        ...

    def carried(self) -> dict[str, str]:
        """The headers by which another process goes on with this trace."""
        ...


class Trace(Extension):
    """Counts each call and tells of it. What nobody inside put on record is put there here.

    `recorded` holds the ids of calls that the record link has written.
    """

    priority = 50

    def __init__(self, meter: Meter, journal: Journal, recorded: set[str]) -> None:
        self._meter = meter
        self._journal = journal
        self._recorded = recorded
        # How many refusals are not on record because the store did not take them.
        self.dropped = 0

    def link(self, inner: Handler) -> Handler:
        """A call that does its work costs a few additions."""
        counted, told = self._counted(inner), self._told(inner)
        is_told: Callable[[int], bool] = calls.isEnabledFor

        # Not a coroutine of its own: one question, and the rest of the chain.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            return told(call) if is_told(_INFO) else counted(call)

        return run

    def _counted(self, inner: Handler) -> Handler:
        now, of = clock.monotonic_ns, self._meter.of
        kept, recorded, bounds = self._meter.calls, self._recorded, BOUNDS

        async def run(call: Call) -> Output:
            try:
                output = await inner(call)
            except Outdated:
                # It is decided anew, and counted then.
                recorded.discard(call.id)
                raise
            except (Exception, asyncio.CancelledError) as error:
                await self._failed(call, error, now() - _began_ns(call, error))
                raise
            took_ns = now() - call.began_ns
            grant = call.grant
            spec, caller = grant.spec, grant.caller
            series = kept.get((caller.tenant, caller.agent, spec.name)) or of(grant)
            if spec.execution is _QUEUED and not call.asked.delivered:
                # How it ends is counted and written where it runs.
                series.statuses["queued"] += 1
                return output
            series.statuses[output.status] += 1
            if output.call_id == call.id and spec.effect is _PURE and not call.asked.wait_s:
                # As `Calls.took`, without a call.
                series.buckets[bisect_left(bounds, took_ns)] += 1
                series.sum_ns += took_ns
                recorded.discard(call.id)
                return output
            await self._answered(call, output, _own_ns(call, output, took_ns))
            return output

        return run

    def _told(self, inner: Handler) -> Handler:
        counted = self._counted(inner)

        async def run(call: Call) -> Output:
            level = logging.DEBUG if call.grant.spec.effect is _PURE else logging.INFO
            _tell(level, _STARTED, call, side_effect_policy=call.grant.spec.effect.value)
            try:
                output = await counted(call)
            except (Exception, asyncio.CancelledError) as error:
                took_ns = clock.monotonic_ns() - _began_ns(call, error)
                _ended(call, _status(call, error), took_ns, code=_code(error))
                raise
            code = "" if output.error is None else output.error.code
            took_ns = _own_ns(call, output, clock.monotonic_ns() - call.began_ns)
            # Whose answer it is, where it was done before.
            first = output.call_id if output.cached else ""
            _ended(call, output.status, took_ns, code=code, cached=output.cached, replay_of=first)
            return output

        return run

    async def _answered(self, call: Call, output: Output, took_ns: int) -> None:
        """A side effect that ran, an answer from the record, or one that an extension gave."""
        meter = self._meter
        if call.id in self._recorded:
            self._recorded.discard(call.id)
            if output.call_id:
                meter.of(call.grant).took(took_ns)
                if call.grant.spec.effect is not _PURE:
                    meter.effect(call)
        elif output.cached:
            meter.hit(call)
        else:
            await self._put(call, None)

    async def _failed(self, call: Call, error: BaseException, took_ns: int) -> None:
        meter = self._meter
        series = meter.of(call.grant)
        series.statuses[_status(call, error)] += 1
        if isinstance(error, CallRefused):
            meter.refuse(error.code)
        elif not isinstance(error, StoreError):
            series.took(took_ns)
            if call.grant.spec.effect is not _PURE and not isinstance(error, ToolError):
                meter.effect(call)
        if call.id in self._recorded:
            self._recorded.discard(call.id)
        elif not (isinstance(error, (ApprovalPending, Superseded)) or _is_left(call, error)):
            # What waits for a person has not come to its end; what was superseded was noted there.
            await self._put(call, error)

    async def _put(self, call: Call, error: BaseException | None) -> None:
        """On record as what did not happen. The caller is told what it would be told anyway."""
        try:
            args = entries.written(call)
        except InvalidArguments:
            args = b""
        entry = entries.plain_entry(call, args, State.STARTED)
        if error is None:
            entry = entries.answered(entry, call)
        else:
            # Nothing was begun, whatever the error would mean further in.
            closed = entries.ended(entry, call, error)
            entry = msgspec.structs.replace(closed, state=State.FAILED)
        try:
            if call.asked.delivered:
                # It may have been brought before, and be on record as what is brought again.
                await self._journal.give_up(entry)
                return
            # Who was cancelled waits for nothing any more.
            if self._journal.crowded() and not isinstance(error, asyncio.CancelledError):
                await self._journal.drain()
            self._journal.note(entry)
        except StoreError as away:
            self.dropped += 1
            _log.error("the refusal of call %s is not on record (%s)", call.id, away.code)


def traced(perform: Perform, spans: Spans | None) -> Perform:
    """The same, with a stretch for the whole call; where nobody traces, the very same."""
    if spans is None:
        return perform
    tracer = spans

    async def run(
        tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None, asked: Asked
    ) -> Output:
        told = {"tool": tool, "tenant": caller.tenant, "agent": caller.agent}
        with tracer.span("toolgate.call", told) as span:
            output = await perform(tool, args, caller=caller, turn=turn, asked=asked)
            span.tell(status=output.status, call_id=output.call_id, cached=output.cached)
            return output

    return run


class Provided(Extension):
    """A stretch of its own for the provider, where somebody traces."""

    priority = 505

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def link(self, inner: Handler) -> Handler:
        """Next to the provider: only its own time is in it."""
        spans = self._spans

        async def run(call: Call) -> Output:
            spec = call.grant.spec
            told = {
                "tool": spec.name,
                "provider": spec.provider,
                "effect": spec.effect.value,
                "call_id": call.id,
            }
            with spans.span("toolgate.provider", told):
                return await inner(call)

        return run


def _status(call: Call, error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, CallRefused) and not is_answer(error):
        return "refused"
    if isinstance(error, (CallFailed, CallRefused)):
        return answer(call, error).status
    return "error"


def _is_left(call: Call, error: BaseException) -> bool:
    """Whether a queue brings it once more; another attempt may be running under its id."""
    if isinstance(error, (StoreError, asyncio.CancelledError)):
        return bool(call.asked.delivered)
    return comes_again(call, error)


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, ToolgateError) else ToolgateError.code


def _began_ns(call: Call, error: BaseException) -> int:
    """When it began by itself: a person's time is not the tool's."""
    began_ns = error.began_ns if isinstance(error, ToolgateError) else 0
    return began_ns or call.began_ns


def _own_ns(call: Call, output: Output, took_ns: int) -> int:
    """How long it took by itself: a person's time is not the tool's."""
    is_told = call.asked.wait_s and output.duration_ms and not output.cached
    return round(output.duration_ms * 1e6) if is_told else took_ns


def _ended(
    call: Call, status: str, took_ns: int, *, code: str, cached: bool = False, replay_of: str = ""
) -> None:
    further = {"error_code": code} if code else {}
    if replay_of:
        further["replay_of"] = replay_of
    _tell(
        logging.INFO,
        _COMPLETED,
        call,
        status=status,
        cached=cached,
        execution_time_ms=round(took_ns / 1e6, 3),
        **further,
    )


def _tell(level: int, event: str, call: Call, **fields: object) -> None:
    if calls.isEnabledFor(level):
        caller = call.grant.caller
        told = {
            "tenant_id": caller.tenant,
            "agent_id": caller.agent,
            "tool_name": call.grant.spec.name,
            "call_id": call.id,
            **fields,
        }
        calls.log(level, event, extra={"fields": told})
