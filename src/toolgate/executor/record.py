"""Every call is on record; a side effect before it happens."""

import asyncio

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import CallRefused, ToolgateError
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.outcome import outcome
from toolgate.ledger.entry import Entry, State
from toolgate.ledger.journal import Journal
from toolgate.spec.effect import Effect

_NOT_TRIED = CallRefused("The call was cancelled before it ran.")


class Record(Extension):
    """Writes the intent, runs, writes the outcome. A pure call is written once, afterwards."""

    priority = 400

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def link(self, inner: Handler) -> Handler:
        """The effect decides whether the record goes before the call or behind it."""
        journal, ahead = self._journal, self._ahead(inner)

        async def run(call: Call) -> Output:
            if call.grant.spec.effect is not Effect.PURE:
                return await ahead(call)
            if journal.crowded():
                await journal.drain()
            args = orjson.dumps(call.args)
            try:
                output = await inner(call)
            except (ToolgateError, asyncio.CancelledError) as error:
                journal.note(_closed(_entry(call, args, State.STARTED), call, error))
                raise
            journal.note(_entry(call, args, State.SUCCEEDED, clock.unix_ns() - call.started_ns))
            return output

        return run

    def _ahead(self, inner: Handler) -> Handler:
        journal = self._journal

        async def run(call: Call) -> Output:
            intent = _entry(call, orjson.dumps(call.args), State.STARTED)
            try:
                await journal.begin(intent)
            except asyncio.CancelledError:
                # The intent may be on record, but nothing was tried.
                await asyncio.shield(journal.end(_closed(intent, call, _NOT_TRIED)))
                raise
            try:
                output = await inner(call)
            except (ToolgateError, asyncio.CancelledError) as error:
                # The outcome is written even when the caller has gone away.
                await asyncio.shield(journal.end(_closed(intent, call, error)))
                raise
            await asyncio.shield(journal.end(_closed(intent, call, None)))
            return output

        return run


def _entry(call: Call, args: bytes, state: State, duration_ns: int = 0) -> Entry:
    caller, spec, turn = call.grant.caller, call.grant.spec, call.turn
    return Entry(
        call.id,
        spec.name,
        spec.fingerprint,
        spec.effect,
        caller.tenant,
        caller.agent,
        caller.user,
        caller.persona,
        caller.session,
        turn.group if turn is not None else "",
        call.kind,
        args,
        call.started_ns,
        state,
        duration_ns,
    )


def _closed(entry: Entry, call: Call, error: BaseException | None) -> Entry:
    """The entry at its end."""
    state, code, message = State.SUCCEEDED, "", ""
    if error is not None:
        state = outcome(entry.effect, error)
        code = error.code if isinstance(error, ToolgateError) else "cancelled"
        message = error.message if isinstance(error, ToolgateError) else "The call was cancelled."
    return msgspec.structs.replace(
        entry,
        state=state,
        error_code=code,
        error_message=message,
        duration_ns=clock.unix_ns() - call.started_ns,
    )
