"""What a session did is kept where policies look at it, before anybody can ask for more.

A policy decides before a call begins: of two calls that are decided at the same moment, neither
sees the other.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from toolgate.call import Call, Output
from toolgate.errors import StoreUnavailable
from toolgate.executor.extension import Extension, Handler, has_run
from toolgate.executor.outcome import comes_again, outcome
from toolgate.executor.recording.late import Late
from toolgate.executor.recording.remembered import scalars
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.history import Past, Sessions, session_of, turn_of
from toolgate.ledger.journal import Outdated
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor

_log = logging.getLogger("toolgate.history")
# How long it holds up a caller who has stopped waiting.
_PATIENCE = 1.0


class Remember(Extension):
    """Keeps each call of a session or a turn while `wanted`; else it costs one question.

    A side effect is kept before it happens, as in flight; a pure call before it is answered.
    """

    priority = 395

    def __init__(
        self, sessions: Sessions, wanted: Callable[[], bool], redactor: Redactor = PLAIN
    ) -> None:
        self._sessions = sessions
        self._redactor = redactor
        self._wanted = wanted
        self._late = Late()

    def link(self, inner: Handler) -> Handler:
        """Outside the record: nothing is on record as tried that could not be kept here."""
        wanted, ahead, behind = self._wanted, self._ahead(inner), self._behind(inner)

        # Not a coroutine of its own: a call that is not kept does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            if (call.turn is None and not call.grant.caller.session) or not wanted():
                return inner(call)
            return behind(call) if call.grant.spec.effect is Effect.PURE else ahead(call)

        return run

    async def drain(self, patience: float) -> None:
        """Until every end is written, or so long."""
        await self._late.drain(patience)

    def _ahead(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            # What is kept is what will run, whoever else holds the arguments.
            call = msgspec.structs.replace(call, args=dict(call.args))
            try:
                await self._sessions.begin(_past(call, State.STARTED, self._redactor))
            except asyncio.CancelledError as error:
                # It may be kept, but nothing was tried.
                await self._end(call, State.FAILED, _PATIENCE)
                if is_overdue(error):
                    raise _not_in_time(call) from None
                raise
            try:
                output = await inner(call)
            except asyncio.CancelledError as error:
                await self._end(call, outcome(call.spec.effect, error), _PATIENCE)
                raise
            except Exception as error:
                if isinstance(error, Outdated) or comes_again(call, error):
                    # It is decided anew, now or when it is brought again: it must not find itself.
                    self._told(call, await self._late.finish(self._sessions.forget(call.id)))
                else:
                    await self._end(call, outcome(call.spec.effect, error))
                raise
            await self._end(call, _state(call, output))
            return output

        return run

    def _behind(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            past = _past(call, State.FAILED, self._redactor)
            try:
                output = await inner(call)
            except asyncio.CancelledError:
                self._told(call, await self._late.finish(self._sessions.begin(past), _PATIENCE))
                raise
            except Exception as error:
                past = msgspec.structs.replace(past, state=outcome(call.spec.effect, error))
                self._told(call, await self._late.finish(self._sessions.begin(past)))
                raise
            past = msgspec.structs.replace(past, state=_state(call, output))
            # An answer that the next decision does not know of is not given; to ask again is free.
            await self._sessions.begin(past)
            return output

        return run

    async def _end(self, call: Call, state: State, patience: float | None = None) -> None:
        """What cannot be written stays in flight, which no policy takes for an end."""
        self._told(call, await self._late.finish(self._sessions.end(call.id, state), patience))

    def _told(self, call: Call, error: Exception | None) -> None:
        if error is not None:
            _log.error(
                "the session's history lacks the end of call %s (%s)", call.id, type(error).__name__
            )


def _past(call: Call, state: State, redactor: Redactor) -> Past:
    caller, turn = call.caller, call.turn
    return Past(
        call_id=call.id,
        tenant=caller.tenant,
        session=session_of(caller),
        turn_group=turn_of(caller, turn),
        tool=call.spec.name,
        state=state,
        args=scalars(call.spec.input_schema.raw, call.args, redactor),
        created_ns=call.started_ns,
    )


def _state(call: Call, output: Output) -> State:
    """An Output that does not bear the call's id was not made by the tool, which did not run."""
    return State.SUCCEEDED if has_run(call, output) else State.FAILED


def _not_in_time(call: Call) -> StoreUnavailable:
    return StoreUnavailable(
        f"The store did not take the history of {call.spec.name!r} in time, so nothing ran. "
        "Try again when it is back."
    )
