"""Several calls, one after the other, until a critical one fails."""

from collections.abc import Sequence
from typing import Any

import msgspec

from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest, ToolgateError
from toolgate.executor.aftercare.probing import Perform
from toolgate.executor.several.planned import PlannedCall, read_planned
from toolgate.executor.several.refused import refused, skipped


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a batch: an Output for each call, and the place of the one that ended it."""

    outputs: tuple[Output, ...]
    stopped_at: int | None = None

    @property
    def ok(self) -> bool:
        """Whether every call did what it was asked to."""
        return all(output.ok for output in self.outputs)

    def to_machine(self) -> dict[str, Any]:
        """Plain JSON, as the doors send it."""
        return {
            "ok": self.ok,
            "stopped_at": self.stopped_at,
            "outputs": [output.to_machine() for output in self.outputs],
        }


def read_batch(given: object, *, most: int) -> list[PlannedCall]:
    """The calls, or `InvalidRequest`: a batch is looked at as a whole before any of it runs."""
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Sequence) or not given:
        raise InvalidRequest("A batch is a list of calls, such as [{'tool': 'echo', 'args': {…}}].")
    if len(given) > most:  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidRequest(
            f"A batch has at most {most} calls, and this one has {len(given)}. Nothing ran: send "  # pyright: ignore[reportUnknownArgumentType]
            "several batches."
        )
    return [read_planned(one, f"Call {index}") for index, one in enumerate(given)]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]


async def run_batch(
    calls: Sequence[PlannedCall], perform: Perform, *, caller: Caller, turn: Turn | None
) -> Batch:
    """In order. What a single caller would be raised is an Output here."""
    outputs: list[Output] = []
    for index, call in enumerate(calls):
        try:
            output = await perform(
                call.tool, dict(call.args), caller=caller, turn=turn, asked=call.asked()
            )
        except ToolgateError as error:
            output = refused(error)
        outputs.append(output)
        if call.critical and not output.ok:
            why = skipped(
                f"Call {index} of the batch, {call.tool!r}, is critical and did not end well."
            )
            rest = len(calls) - index - 1
            stopped = index if rest else None
            return Batch(outputs=(*outputs, *[why] * rest), stopped_at=stopped)
    return Batch(outputs=tuple(outputs))
