"""What others are told of the ledger: events, and the box that they wait in until they are sent."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson

from toolgate.call import Event
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect

KINDS: Mapping[State, str] = {
    State.STARTED: "side_effect.started",
    State.SUCCEEDED: "side_effect.completed",
    State.FAILED: "side_effect.failed",
    State.RELEASED: "side_effect.released",
    State.UNKNOWN: "side_effect.unknown",
    State.COMPENSATED: "side_effect.undone",
    State.COMPENSATION_FAILED: "side_effect.undo_failed",
}
# So many wait at the most; then side effects are refused, which would tell of themselves.
MOST_WAITING = 100_000
# Larger arguments and results are asked for by the call's id.
_MOST_SHOWN = 16_384


def event_of(entry: Entry, at_ns: int) -> Event | None:
    """What is told of a side effect that is in this state now; nothing of a pure call.

    The same state of the same attempt has the same id, whoever tells of it.
    """
    kind = KINDS.get(entry.state)
    if kind is None or entry.effect is Effect.PURE:
        return None
    return Event(
        id=f"evt_{entry.call_id}.{entry.fence}.{entry.state}",
        kind=kind,
        at_ns=at_ns,
        tenant=entry.tenant,
        agent=entry.agent,
        tool=entry.tool,
        call_id=entry.call_id,
        turn_group=entry.turn_group,
        turn_id=entry.turn_id,
        payload=_payload(entry),
    )


def _payload(entry: Entry) -> dict[str, Any]:
    payload: dict[str, Any] = {"effect": str(entry.effect), "user": entry.user}
    told = (
        ("session", entry.session),
        ("approval_id", entry.approval),
        ("undo_of", entry.undo_of),
        ("again_of", entry.again_of),
        ("error_code", entry.error_code),
        ("error", entry.error_message),
    )
    payload |= {name: value for name, value in told if value}
    if entry.args and len(entry.args) <= _MOST_SHOWN:
        payload["args"] = orjson.loads(entry.args)
    if entry.state is State.SUCCEEDED and 0 < len(entry.result) <= _MOST_SHOWN:
        payload["result"] = orjson.loads(entry.result).get("data")
    if entry.state is not State.STARTED:
        payload["duration_ms"] = entry.duration_ns / 1e6
    return payload


class Waiting(msgspec.Struct, frozen=True):
    """An event that is to be sent. `attempts` counts this one."""

    number: int
    event: Event
    attempts: int


class Outbox(Protocol):
    """Events that are on record with what they tell of, and wait to be sent.

    Those of one key come out in their order: the next one when the last is `sent`.
    """

    async def take(self, limit: int, lease: float) -> Sequence[Waiting]:
        """The oldest that are due. Nobody else is given them for so many seconds."""
        ...

    async def sent(self, numbers: Sequence[int]) -> None:
        """They have arrived."""
        ...

    async def later(self, number: int, seconds: float) -> None:
        """It has not; it is due again after so long."""
        ...

    async def waiting(self) -> int:
        """How many there are, counted up to `MOST_WAITING`."""
        ...
