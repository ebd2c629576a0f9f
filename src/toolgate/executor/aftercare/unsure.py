"""Calls whose end nobody knows and a probe may tell: which of them are to be asked about now."""

from collections.abc import Sequence
from itertools import zip_longest

from toolgate import clock
from toolgate.ledger.entry import Entry
from toolgate.ledger.ledger import Ledger

# How many are looked at together.
_PAGE = 64
# How soon a probe that could not tell is asked again: at first, and after a while.
_ASK_AGAIN_NS = 60_000_000_000
_MOST_PATIENCE_NS = 3_600_000_000_000


class Unsure:
    """Goes through all of them, page by page and round by round; the newest are seen each time.

    `lease_ns`: nobody is asked before that, since what is on its way when a call is given up can
    still arrive.
    """

    def __init__(self, ledger: Ledger, lease_ns: int) -> None:
        self._ledger = ledger
        self._lease_ns = lease_ns
        # By call: when its probe may be asked again, and after how long the next time.
        self._asked: dict[str, tuple[int, int]] = {}
        self._seen: set[str] = set()
        self._behind: Entry | None = None

    async def due(self) -> Sequence[Entry]:
        """Those of the next page of this round and of the newest; who waits longest is first."""
        page = await self._ledger.unsure(_PAGE, behind=self._behind)
        newest = page if self._behind is None else await self._ledger.unsure(_PAGE)
        self._seen.update(one.call_id for one in (*page, *newest))
        # Some of either, whatever there is of the other.
        pairs = zip_longest(self._ready(page), self._ready(newest))
        found = {one.call_id: one for pair in pairs for one in pair if one is not None}
        self._behind = page[-1] if len(page) == _PAGE else None
        if self._behind is None:
            # A whole round: what was not met in it has been settled.
            self._asked = {one: of for one, of in self._asked.items() if one in self._seen}
            self._seen.clear()
        return list(found.values())

    def asked(self, entry: Entry) -> None:
        """Its probe is asked now; if it cannot tell, not again at once."""
        _, last_ns = self._asked.get(entry.call_id, (0, 0))
        wait_ns = min(max(2 * last_ns, _ASK_AGAIN_NS), _MOST_PATIENCE_NS)
        self._asked[entry.call_id] = (clock.unix_ns() + wait_ns, wait_ns)

    def _ready(self, entries: Sequence[Entry]) -> list[Entry]:
        now = clock.unix_ns()
        return sorted((one for one in entries if self._due_ns(one) <= now), key=self._due_ns)

    def _due_ns(self, entry: Entry) -> int:
        due_ns, _ = self._asked.get(entry.call_id, (entry.ended_ns + self._lease_ns, 0))
        return due_ns
