"""A call as the ledger keeps it: what is written before, and how it is completed."""

from typing import Any

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.caller import NO_CONTEXT, Caller
from toolgate.errors import InvalidArguments, TimedOut, ToolError, ToolgateError
from toolgate.executor.aside import Aside, whole
from toolgate.executor.limits import costs
from toolgate.executor.mapping import UnmappedError, filled
from toolgate.executor.outcome import is_paid, outcome
from toolgate.executor.recording.claim import claim_of, first_of
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Recovery, recovery_of
from toolgate.ledger.read import read_of
from toolgate.ledger.state import State
from toolgate.spec.document import NON_FINITE, has_non_finite, sha256
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import secret_texts, without_secrets, without_values
from toolgate.spec.tool import ToolSpec

_MOST_TEXT = 4_000
# Larger arguments are not kept, only their digest: such a call is not run again by itself.
_MOST_ARGS = 65_536
_encode = msgspec.json.Encoder().encode


def written(call: Call) -> bytes:
    """The arguments as JSON: a schema need not look at every value."""
    try:
        raw = orjson.dumps(call.args)
    except TypeError as error:
        raise InvalidArguments(call.spec.name, [("", f"not JSON ({error})")]) from None
    # `in` takes twice as long: it asks first whether this is a number.
    if raw.find(b"null") >= 0 and has_non_finite(call.args):
        raise InvalidArguments(call.spec.name, [("", f"not JSON ({NON_FINITE})")])
    return raw


def settled(call: Call) -> tuple[Call, bytes]:
    """The call with arguments that nobody else holds, as they are recorded and as they will run."""
    raw = written(call)
    args = orjson.loads(raw)
    schema = call.spec.input_schema
    if not schema.is_valid(args):
        raise InvalidArguments(
            call.spec.name, without_values(schema.raw, args, schema.problems(args))
        )
    return msgspec.structs.replace(call, args=args), raw


def plain_entry(call: Call, args: bytes, state: State) -> Entry:
    """A call that is written once, at its end."""
    return read_of(call, args).entry(state)


def intent(call: Call, raw: bytes, redactor: Redactor = PLAIN) -> Entry:
    """A side effect before it happens: its claim, and its arguments without their secrets."""
    grant, turn, asked = call.grant, call.turn, call.asked
    caller, spec = grant.caller, grant.spec
    claim = claim_of(call, raw, redactor)
    shown = without_secrets(spec.input_schema.raw, call.args)
    kept = redactor.raw(raw if shown is call.args else orjson.dumps(shown))
    # At once, not as a changed plain one: there are many fields to copy.
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
        asked.kind,
        kept if len(kept) <= _MOST_ARGS else b"",
        call.started_ns,
        State.STARTED,
        args_hash=sha256(raw),
        decision=grant.decision,
        chain=asked.chain,
        chain_index=asked.chain_index,
        planned=b"" if asked.planned is None else _encode(asked.planned),
        turn_id=turn.id if turn is not None else "",
        scope=claim.scope,
        key=claim.key,
        digest=claim.digest,
        recovery=recovery_of(spec),
        approval=call.approval,
        again_of=asked.again_of,
        undo_of=asked.undo_of,
        task=task_of(caller),
        charges=costs.held(call.charges),
    )


def task_of(caller: Caller) -> bytes:
    """What a later decision needs to know of a caller, beside its names."""
    context = caller.context
    plain = not (caller.roles or caller.delegation) and (
        # Comparing takes time, and nearly nobody has one.
        context is NO_CONTEXT or context == NO_CONTEXT
    )
    try:
        # Whoever goes on with it later comes by no key and no token.
        return b"" if plain else _encode(msgspec.structs.replace(caller, key="", until_ns=0))
    except UnicodeEncodeError:
        # No JSON can hold it: nobody can be asked about this caller later.
        return b"null"


def downstream_key(entry: Entry) -> str:
    """What the far side knows this piece of business by: the same for every attempt at it."""
    if entry.again_of and (first := first_of(entry.key)):
        return first
    business = f"{entry.tenant}\0{entry.scope}\0{entry.key}" if entry.key else entry.call_id
    return sha256(business.encode("utf-8", "backslashreplace"))[7:39]


def succeeded(entry: Entry, call: Call, output: Output, redactor: Redactor = PLAIN) -> Entry:
    """The entry of a call that did its work, with how to take it back."""
    result = whole(output)
    return msgspec.structs.replace(
        entry,
        state=State.SUCCEEDED,
        duration_ns=clock.monotonic_ns() - call.began_ns,
        result=stored(call, output, redactor),
        plan=plan_of(call.spec, call.args, result, redactor, fence=entry.fence),
        charges=costs.charged(call, result) or entry.charges,
    )


def failed(
    entry: Entry, call: Call, error: BaseException, output: Output, redactor: Redactor = PLAIN
) -> Entry:
    """The entry of a call that did not end well, as its caller is told."""
    closed = ended(entry, call, error)
    # What the tool said on purpose it would say again; anything else may go away.
    # An undo that failed can be tried again, once its reason is gone.
    permanent = isinstance(error, ToolError) and not error.retryable and not entry.undo_of
    return msgspec.structs.replace(
        closed, result=stored(call, output, redactor), permanent=permanent
    )


def answered(entry: Entry, call: Call) -> Entry:
    """An extension answered between here and the tool, which did not run."""
    closed = msgspec.structs.replace(
        ended(entry, call, None), error_code="not_run", error_message="An extension answered."
    )
    return _not_begun(closed)


def untried(entry: Entry, call: Call, error: BaseException) -> Entry:
    """The entry of a call that was given up before anything was tried: it costs nothing."""
    return _not_begun(ended(entry, call, error))


def _not_begun(closed: Entry) -> Entry:
    """That this attempt did nothing says nothing about the one before it."""
    if closed.doubt and closed.recovery is Recovery.KEYED:
        return msgspec.structs.replace(closed, state=State.UNKNOWN)
    return msgspec.structs.replace(closed, state=State.FAILED, charges=())


def released(entry: Entry, call: Call, error: BaseException) -> Entry:
    """The entry of a call that was not begun, and that a queue brings again: it costs nothing."""
    closed = ended(entry, call, error)
    return msgspec.structs.replace(closed, state=State.RELEASED, charges=())


def ended(entry: Entry, call: Call, error: BaseException | None) -> Entry:
    """The entry at its end."""
    state, code, message, paid = State.SUCCEEDED, "", "", True
    if error is not None:
        state, paid = outcome(entry.effect, error), is_paid(entry.effect, error)
        if state is State.FAILED and entry.doubt and entry.recovery is Recovery.KEYED:
            # That this attempt did nothing says nothing about the one before it.
            state, paid = State.UNKNOWN, True
        if isinstance(error, InvalidArguments):
            # Its words show the arguments, which are not kept.
            code, message = error.code, "The arguments were refused."
        elif isinstance(error, ToolgateError):
            code, message = error.code, error.message[:_MOST_TEXT]
        elif is_overdue(error):
            code, message = TimedOut.code, "The call took too long."
        elif not isinstance(error, Exception):
            code, message = "cancelled", "The call was cancelled."
        else:
            code, message = ToolgateError.code, f"It failed with {type(error).__name__}."
    return msgspec.structs.replace(
        entry,
        state=state,
        error_code=code,
        error_message=message,
        duration_ns=clock.monotonic_ns() - call.began_ns,
        charges=(costs.held(call.charges) or entry.charges) if paid else (),
    )


def stored(call: Call, output: Output, redactor: Redactor = PLAIN) -> bytes:
    """The answer as it is kept for whoever asks again: without secrets."""
    schema, data = call.spec.output_schema, output.data
    # Of one that was kept aside, the head holds none any more.
    if schema is not None and type(data) is not Aside and isinstance(data, (dict, list)):
        shown = without_secrets(schema.raw, data)
        if shown is not data:
            output = msgspec.structs.replace(output, data=shown)
    known = secret_texts(call.spec.input_schema.raw, call.args)
    return redactor.knowing(known).raw(orjson.dumps(_fields(output)))


def _fields(output: Output) -> dict[str, Any]:
    """By their names. What the tool gave is JSON already; of the rest the failure is not."""
    error = output.error
    label = {"untrusted": True} if output.untrusted else {}
    return {
        "status": output.status,
        "data": output.data,
        "error": None if error is None else msgspec.structs.asdict(error),
        "call_id": output.call_id,
        "cached": output.cached,
        "duration_ms": output.duration_ms,
        "side_effects": output.side_effects,
        "protocol_version": output.protocol_version,
        **label,
    }


def plan_of(
    spec: ToolSpec, args: dict[str, Any], result: object, redactor: Redactor, *, fence: int = 1
) -> bytes:
    """The call that takes one back: made while its arguments and its result are at hand.

    `fence`: the one that it was done under; those behind it count how often it is taken back.
    """
    compensation = spec.compensation
    if compensation is None:
        return b""
    plan: dict[str, object] = {"tool": compensation.tool, "window": compensation.window}
    if fence > 1:
        plan["fence"] = fence
    known = secret_texts(spec.input_schema.raw, args)
    if spec.output_schema is not None:
        known |= secret_texts(spec.output_schema.raw, result)
    try:
        filled_in = filled(compensation.args.value(), {"args": args, "result": result})
        if redactor.knowing(known).value(filled_in) == filled_in:
            plan["args"] = filled_in
        else:
            plan["problem"] = "its arguments would hold a secret, and secrets are not kept"
    except UnmappedError as error:
        plan["problem"] = f"{error} is not in the call's arguments or result"
    return orjson.dumps(plan)
