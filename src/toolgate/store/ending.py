"""What the end of a call changes in its row."""

from typing import Any

import msgspec

from toolgate.ledger.entry import Entry
from toolgate.store.rows import SUCCESS, charges_text, text_of
from toolgate.store.text import storable, storable_row

ENDING = (
    "state",
    "success",
    "duration_ms",
    "error_code",
    "error_message",
    "permanent",
    "result",
    "plan",
    "charges",
)


class _Plan(msgspec.Struct):
    window: float | None = None


_decode = msgspec.json.Decoder(_Plan).decode


def ending_values(entry: Entry) -> tuple[Any, ...]:
    """By `ENDING`."""
    state = entry.state
    row = (
        str(state),
        SUCCESS[state],
        entry.duration_ns / 1e6,
        entry.error_code,
        entry.error_message,
        entry.permanent,
        text_of(entry.result),
        text_of(entry.plan),
        charges_text(entry) if entry.charges else "",
    )
    return storable_row(row)


def guard_values(entry: Entry) -> tuple[Any, ...]:
    """Whose end it is: call, tenant and fence."""
    return storable(entry.call_id), storable(entry.tenant), entry.fence


def window_ns(entry: Entry) -> int | None:
    """For how long it can be taken back, by its plan."""
    if not entry.plan:
        return None
    window = _decode(entry.plan).window
    return None if window is None else round(window * 1e9)
