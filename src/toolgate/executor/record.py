"""Every call is on record; a side effect before it happens."""

import asyncio
import logging

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import (
    ExecutionFailed,
    InvalidArguments,
    StoreUnavailable,
    TimedOut,
    ToolgateError,
)
from toolgate.executor.deadline import is_overdue
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.late import Late
from toolgate.executor.outcome import outcome
from toolgate.ledger.entry import Entry, State
from toolgate.ledger.journal import Journal
from toolgate.spec.document import NON_FINITE, has_non_finite
from toolgate.spec.effect import Effect
from toolgate.spec.secret import without_values

log = logging.getLogger("toolgate.journal")
_MOST_TEXT = 4_000
# How long an outcome holds up a caller who has stopped waiting for it.
_PATIENCE = 1.0


class Record(Extension):
    """Writes the intent, runs, writes the outcome. A pure call is written once, afterwards."""

    priority = 400

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._late = Late()

    def link(self, inner: Handler) -> Handler:
        """The effect decides whether the record goes before the call or behind it."""
        journal, ahead = self._journal, self._ahead(inner)

        async def run(call: Call) -> Output:
            if call.grant.spec.effect is not Effect.PURE:
                return await ahead(call)
            if journal.crowded():
                await journal.drain()
            args = _written(call)
            try:
                output = await inner(call)
            except (Exception, asyncio.CancelledError) as error:
                journal.note(_closed(_entry(call, args, State.STARTED), call, error))
                raise
            if output.call_id != call.id:
                journal.note(_answered(_entry(call, args, State.STARTED), call))
            else:
                journal.note(_entry(call, args, State.SUCCEEDED, clock.unix_ns() - call.started_ns))
            return output

        return run

    def _ahead(self, inner: Handler) -> Handler:
        journal = self._journal

        async def run(call: Call) -> Output:
            call, args = _settled(call)
            intent = _entry(call, args, State.STARTED)
            try:
                await journal.begin(intent)
            except asyncio.CancelledError as error:
                # The intent may be on record, but nothing was tried.
                closed = _closed(intent, call, error)
                await self._end(msgspec.structs.replace(closed, state=State.FAILED), _PATIENCE)
                if is_overdue(error):
                    raise StoreUnavailable(
                        f"The store did not take the record of {call.spec.name!r} in time, so "
                        "nothing ran. Try again when it is back."
                    ) from None
                raise
            try:
                output = await inner(call)
            except asyncio.CancelledError as error:
                await self._end(_closed(intent, call, error), _PATIENCE)
                raise
            except Exception as error:
                await self._end(_closed(intent, call, error))
                raise
            ran = output.call_id == call.id
            closed = _closed(intent, call, None) if ran else _answered(intent, call)
            if not await self._end(closed):
                raise ExecutionFailed(
                    f"{call.spec.name!r} ran, but its outcome could not be put on record. "
                    "Check what it did before you call it again."
                )
            return output

        return run

    async def _end(self, entry: Entry, patience: float | None = None) -> bool:
        """Write the outcome, also when the caller has gone away; whether it is on record."""
        error = await self._late.finish(self._journal.end(entry), patience)
        if error is not None:
            # The intent stays open, which nobody can take for a call that did not happen.
            log.error(
                "the outcome of call %s is not on record (%s)", entry.call_id, type(error).__name__
            )
        return error is None


def _settled(call: Call) -> tuple[Call, bytes]:
    """The call with arguments that nobody else holds, as they are recorded and as they will run."""
    raw = _written(call)
    args = orjson.loads(raw)
    if not call.spec.input_schema.is_valid(args):
        schema = call.spec.input_schema
        raise InvalidArguments(
            call.spec.name, without_values(schema.raw, args, schema.problems(args))
        )
    return msgspec.structs.replace(call, args=args), raw


def _answered(entry: Entry, call: Call) -> Entry:
    """An extension answered between here and the tool, which did not run."""
    closed = _closed(entry, call, None)
    return msgspec.structs.replace(
        closed, state=State.FAILED, error_code="not_run", error_message="An extension answered."
    )


def _written(call: Call) -> bytes:
    """The arguments as JSON: a schema need not look at every value."""
    try:
        raw = orjson.dumps(call.args)
    except TypeError as error:
        raise InvalidArguments(call.spec.name, [("", f"not JSON ({error})")]) from None
    # `in` takes twice as long: it asks first whether this is a number.
    if raw.find(b"null") >= 0 and has_non_finite(call.args):
        raise InvalidArguments(call.spec.name, [("", f"not JSON ({NON_FINITE})")])
    return raw


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
        decision=call.grant.decision,
    )


def _closed(entry: Entry, call: Call, error: BaseException | None) -> Entry:
    """The entry at its end."""
    state, code, message = State.SUCCEEDED, "", ""
    if error is not None:
        state = outcome(entry.effect, error)
        if isinstance(error, InvalidArguments):
            # Its words show the arguments, which are not kept.
            code, message = error.code, "The arguments were refused."
        elif isinstance(error, ToolgateError):
            code, message = error.code, error.message[:_MOST_TEXT]
        elif is_overdue(error):
            code, message = TimedOut.code, "The call took too long."
        elif isinstance(error, asyncio.CancelledError):
            code, message = "cancelled", "The call was cancelled."
        else:
            code, message = ToolgateError.code, f"It failed with {type(error).__name__}."
    return msgspec.structs.replace(
        entry,
        state=state,
        error_code=code,
        error_message=message,
        duration_ns=clock.unix_ns() - call.started_ns,
    )
