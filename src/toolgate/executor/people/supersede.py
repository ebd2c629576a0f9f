"""Immediately before what cannot be taken back: whether newer messages wait, and what then."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from toolgate.call import Call, Caller, Output, Turn
from toolgate.errors import InvalidRequest, Superseded
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.recording import entries
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.tenancy.capsule import NewerMessages


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
            if await _asked(call, turn):
                match self._policy(call.caller):
                    case NewerMessages.SUPERSEDE:
                        raise self._superseded(call)
                    case NewerMessages.ABSORB:
                        if turn.absorb_messages is None:
                            raise self._superseded(call)
                        await _answered(call, "absorb_messages", turn.absorb_messages)
                    case NewerMessages.FORCE_COMPLETE | NewerMessages.QUEUE:
                        # Goes on; the newer message belongs to what comes after.
                        pass
            return await inner(call)

        return run

    def _superseded(self, call: Call) -> Superseded:
        """On record, and what its caller is told."""
        error = Superseded(
            f"Newer messages came before {call.spec.name!r}, which cannot be taken back. Nothing "
            "ran: read them first."
        )
        entry = entries.plain_entry(call, entries.written(call), State.STARTED)
        closed = entries.ended(entry, call, error)
        self._journal.note(msgspec.structs.replace(closed, state=State.SUPERSEDED))
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
