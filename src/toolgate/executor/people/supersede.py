"""Immediately before what cannot be taken back: whether newer messages wait, and what then.

The question stands before the record, so that what newer messages hold up is never begun. A call
that has waited since then, for a place or for the store, is asked about once more.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from toolgate import clock
from toolgate.call import Call, Output, Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest, Superseded
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.recording import entries
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.tenancy.capsule import NewerMessages

# A call that gets from its first question to its tool within this has not waited.
_AT_ONCE_NS = 100_000_000


class Supersede(Extension):
    """Asks the turn before an irreversible call. `policy` says what its agent does about it."""

    priority = 330

    def __init__(self, journal: Journal, policy: Callable[[Caller], NewerMessages]) -> None:
        self._journal = journal
        self._policy = policy

    def link(self, inner: Handler) -> Handler:
        """Whoever cannot tell is not asked."""
        ahead, irreversible = self._ahead(inner), Effect.IRREVERSIBLE

        # Not a coroutine of its own: a call that is not asked about does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            turn = call.turn
            if (
                turn is None
                or turn.has_pending_messages is None
                or call.grant.spec.effect is not irreversible
                or not call.may_start
            ):
                return inner(call)
            return ahead(call, turn)

        return run

    def _ahead(self, inner: Handler) -> Callable[[Call, Turn], Coroutine[Any, Any, Output]]:
        async def run(call: Call, turn: Turn) -> Output:
            if await self._comes_first(call, turn):
                raise self._noted(call)
            return await inner(call)

        return run

    async def again(self, call: Call, *, waited: bool) -> None:
        """Behind the last wait: nothing, or `Superseded`. Whose intent is on record ends there."""
        turn = call.turn
        if turn is None or turn.has_pending_messages is None or not call.may_start:
            return
        if not waited and clock.monotonic_ns() - call.began_ns < _AT_ONCE_NS:
            return
        if await self._comes_first(call, turn):
            raise _superseded(call)

    async def _comes_first(self, call: Call, turn: Turn) -> bool:
        """Whether newer messages wait that this call has to wait for."""
        if not await _asked(call, turn):
            return False
        match self._policy(call.caller):
            case NewerMessages.SUPERSEDE:
                return True
            case NewerMessages.ABSORB:
                if turn.absorb_messages is None:
                    return True
                await _answered(call, "absorb_messages", turn.absorb_messages)
            case NewerMessages.FORCE_COMPLETE | NewerMessages.QUEUE:
                # Goes on; the newer message belongs to what comes after.
                pass
        return False

    def _noted(self, call: Call) -> Superseded:
        """On record, and what its caller is told."""
        error = _superseded(call)
        entry = entries.plain_entry(call, entries.written(call), State.STARTED)
        closed = entries.ended(entry, call, error)
        self._journal.note(msgspec.structs.replace(closed, state=State.SUPERSEDED))
        return error


def _superseded(call: Call) -> Superseded:
    error = Superseded(
        f"Newer messages came before {call.spec.name!r}, which cannot be taken back. Nothing "
        "ran: read them first."
    )
    error.call_id = call.id
    return error


async def _asked(call: Call, turn: Turn) -> bool:
    assert turn.has_pending_messages is not None  # noqa: S101  its caller has looked
    answer = await _answered(call, "has_pending_messages", turn.has_pending_messages)
    if answer is True or answer is False:
        return answer
    raise InvalidRequest(
        f"'has_pending_messages' of the turn answers with a {type(answer).__name__}, not with True "
        f"or False. {call.spec.name!r} cannot be taken back, so nothing ran."
    )


async def _answered(call: Call, name: str, hook: Callable[[], object]) -> object:
    """The hook's answer; where it has none, nobody can tell, so no."""
    try:
        answer = hook()
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError as error:
        if is_overdue(error):
            raise _refused(call, name, "did not answer in time") from None
        raise
    except Exception as error:
        raise _refused(call, name, f"failed with {type(error).__name__}") from error


def _refused(call: Call, name: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"{name!r} of the turn {what}. {call.spec.name!r} cannot be taken back, so nothing ran: "
        "correct the turn, and call again."
    )
