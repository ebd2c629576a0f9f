"""The outbox in memory, with the rules of the table; everything is gone when it is."""

from collections.abc import Sequence

import msgspec

from toolgate import clock
from toolgate.call import Event
from toolgate.ledger.events import MOST_WAITING, Waiting
from toolgate.store.text import json_text


class MemoryOutbox:
    """The port over a dictionary."""

    def __init__(self) -> None:
        self._next = 1
        # Number: key, event, attempts, and when it is due.
        self._rows: dict[int, tuple[str, Event, int, int]] = {}

    def put(self, event: Event, *, key: str = "") -> None:
        """What a transaction would write."""
        # As a row would hold it, without what JSON has no bytes for.
        event = msgspec.json.decode(json_text(event), type=Event)
        self._rows[self._next] = (key or event.call_id, event, 0, 0)
        self._next += 1

    async def take(self, limit: int, lease: float) -> Sequence[Waiting]:
        """The first of each key, if it is due."""
        now, seen, due = clock.unix_ns(), set[str](), list[Waiting]()
        for number, (key, event, attempts, due_ns) in sorted(self._rows.items()):
            if key not in seen and due_ns <= now and len(due) < limit:
                self._rows[number] = (key, event, attempts + 1, now + round(lease * 1e9))
                due.append(Waiting(number, event, attempts + 1))
            seen.add(key)
        return due

    async def sent(self, numbers: Sequence[int]) -> None:
        """They have arrived."""
        for number in numbers:
            self._rows.pop(number, None)

    async def later(self, number: int, seconds: float) -> None:
        """It has not."""
        key, event, attempts, _due = self._rows[number]
        self._rows[number] = (key, event, attempts, clock.unix_ns() + round(seconds * 1e9))

    async def waiting(self) -> int:
        """How many there are."""
        return min(len(self._rows), MOST_WAITING)
