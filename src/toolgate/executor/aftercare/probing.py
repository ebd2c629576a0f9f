"""Asking whether a call happened whose end nobody saw: by the pure tool that can tell."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

import msgspec
import orjson

from toolgate import clock
from toolgate.asked import PLAINLY, Asked
from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.errors import ToolgateError
from toolgate.executor.aftercare import recalled
from toolgate.executor.mapping import UnmappedError, filled, found
from toolgate.executor.recording.entries import downstream_key, plan_of
from toolgate.ledger.charging import later
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import without_secrets
from toolgate.spec.tool import Probe, ToolSpec

SpecOf = Callable[[str], ToolSpec | None]
# The side effect on record, by its tenant and an id.
Find = Callable[[str, str], Awaitable[Entry | None]]
_NOWHERE = object()


class Perform(Protocol):
    """How a call is decided and run."""

    def __call__(
        self, tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None, asked: Asked
    ) -> Coroutine[Any, Any, Output]: ...


class Told(NamedTuple):
    """What a probe said: it happened, it did not, or nobody can tell, and why not."""

    happened: bool | None
    why: str = ""
    result: Any = _NOWHERE


class Probing:
    """Calls probes as the caller whose call is asked about, through the gate like any call."""

    def __init__(self, perform: Perform, spec_of: SpecOf, redactor: Redactor = PLAIN) -> None:
        self._perform = perform
        self._spec_of = spec_of
        self._redactor = redactor

    def has_probe(self, entry: Entry) -> bool:
        """Whether anybody can be asked."""
        spec = self._spec_of(entry.tool)
        return spec is not None and spec.probe is not None

    async def ask(self, entry: Entry) -> Told:
        """Whether it happened. Whatever goes wrong, nothing is concluded from it."""
        spec = self._spec_of(entry.tool)
        probe = None if spec is None else spec.probe
        if probe is None:
            return Told(None, f"{entry.tool!r} has no probe any more")
        asked = self._spec_of(probe.tool)
        if asked is None or asked.effect is not Effect.PURE:
            return Told(None, f"its probe {probe.tool!r} is not there, or is not pure")
        known = {"key": downstream_key(entry), "args": recalled.known_args(entry)}
        try:
            args = filled(probe.args.value(), known)
            output = await self._perform(
                probe.tool, args, caller=recalled.caller_of(entry), turn=None, asked=PLAINLY
            )
        except UnmappedError as error:
            return Told(None, f"{error}, which its probe needs, is not on record")
        except ToolgateError as error:
            return Told(None, f"its probe {probe.tool!r} could not be asked ({error.code})")
        return _read(probe, output)

    def ended(self, entry: Entry, told: Told) -> Entry:
        """The entry as it is to be on record, once a probe was asked."""
        closed = msgspec.structs.replace(
            entry,
            duration_ns=max(clock.unix_ns() - entry.started_ns, 0),
            error_code="",
            error_message="",
            result=b"",
        )
        if told.happened is None:
            return failed(closed, State.UNKNOWN, "outcome_unknown", told.why)
        if not told.happened:
            return failed(closed, State.FAILED, "not_happened", "Its probe says: not happened.")
        result = None if told.result is _NOWHERE else told.result
        spec = self._spec_of(entry.tool)
        if spec is None:
            return msgspec.structs.replace(
                closed, state=State.SUCCEEDED, charges=later(entry, State.SUCCEEDED)
            )
        kept = b"" if told.result is _NOWHERE else self._kept(spec, result, entry)
        plan = plan_of(spec, recalled.known_args(entry), result, self._redactor)
        return msgspec.structs.replace(
            closed,
            state=State.SUCCEEDED,
            result=kept,
            plan=plan,
            charges=later(entry, State.SUCCEEDED),
        )

    def _kept(self, spec: ToolSpec, result: Any, entry: Entry) -> bytes:
        schema = spec.output_schema
        if schema is not None and isinstance(result, (dict, list)):
            result = without_secrets(schema.raw, result)
        output = Output(
            status="success",
            data=result,
            call_id=entry.call_id,
            side_effects=spec.side_effects,
            untrusted=spec.retells,
        )
        return self._redactor.raw(orjson.dumps(msgspec.to_builtins(output)))


def failed(entry: Entry, state: State, code: str, why: str) -> Entry:
    """The entry with the reason why it is not known to have happened."""
    return msgspec.structs.replace(
        entry,
        state=state,
        error_code=code,
        error_message=why[:4_000],
        charges=later(entry, state),
    )


def _read(probe: Probe, output: Output) -> Told:
    if not output.ok:
        code = output.status if output.error is None else output.error.code
        return Told(None, f"its probe {probe.tool!r} did not answer ({code})")
    try:
        happened = found(output.data, probe.happened)
    except UnmappedError:
        happened = None
    if not isinstance(happened, bool):
        return Told(None, f"its probe {probe.tool!r} said neither true nor false")
    if not happened or not probe.result:
        return Told(happened)
    try:
        return Told(happened, result=found(output.data, probe.result))
    except UnmappedError:
        return Told(happened)
