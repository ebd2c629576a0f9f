"""What sessions did, in memory, with the rules of the table; everything is gone when it is."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from toolgate import clock
from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.ledger.history import KEEP_NS, LAST_CALLS, Past, session_of, told, turn_of
from toolgate.ledger.state import State


class MemoryHistory:
    """The port for sessions over a dictionary. `calls` is what a test looks at, by id."""

    def __init__(self) -> None:
        self.calls: dict[str, Past] = {}

    async def begin(self, past: Past) -> None:
        """A call that is there already stays as it is."""
        self.calls.setdefault(past.call_id, past)

    async def end(self, call_id: str, state: State) -> None:
        """Only what has started can end."""
        past = self.calls.get(call_id)
        if past is not None and past.state is State.STARTED:
            self.calls[call_id] = msgspec.structs.replace(past, state=state)

    async def forget(self, call_id: str) -> None:
        """Only what has started can be given up."""
        past = self.calls.get(call_id)
        if past is not None and past.state is State.STARTED:
            del self.calls[call_id]

    async def of(self, caller: Caller, turn: Turn | None) -> dict[str, Any]:
        """What the session did, and what the turn did, in the caller's tenant."""
        session, group = session_of(caller), turn_of(caller, turn)
        return {
            "session": self._told(caller, lambda past: past.session == session, session),
            "turn": self._told(caller, lambda past: past.turn_group == group, group),
        }

    def _told(self, caller: Caller, belongs: Callable[[Past], bool], name: str) -> dict[str, Any]:
        since_ns = clock.unix_ns() - KEEP_NS
        found = [
            past
            for past in self.calls.values()
            if name
            and past.tenant == caller.tenant
            and past.created_ns >= since_ns
            and belongs(past)
        ]
        found.sort(key=lambda past: (past.created_ns, past.call_id), reverse=True)
        seen = Counter[str]()
        newest: list[Past] = []
        for past in found:
            if past.state is State.SUCCEEDED:
                seen[past.tool] += 1
                if seen[past.tool] <= LAST_CALLS:
                    newest.append(past)
        counts = Counter((past.tool, past.state) for past in sorted(found, key=lambda p: p.tool))
        return told(
            ((tool, state, number) for (tool, state), number in counts.items()),
            ((past.tool, past.args) for past in newest),
        )
