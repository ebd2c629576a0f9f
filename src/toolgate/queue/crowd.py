"""How many calls are queued, as far as this process knows: counted now and then, added between."""

from collections import Counter
from collections.abc import Mapping


class Crowd:
    """So many may wait in all, and of one tenant."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._counted: Counter[str] = Counter()
        self._total = 0
        # Those that came while somebody counts: nobody knows whether they are in what is found.
        self._since: Counter[str] = Counter()
        # Whether there can be more than were counted.
        self.grew = True

    def is_full(self, tenant: str) -> bool:
        """Whether there is no place for one more; else it has a place now."""
        if self._total >= self._most or self._counted[tenant] >= self._most_of_one:
            return True
        self._total += 1
        self._counted[tenant] += 1
        self._since[tenant] += 1
        self.grew = True
        return False

    def begin(self) -> None:
        """The store is asked from now on."""
        self._since.clear()

    def count(self, found: Mapping[str, int]) -> None:
        """As the store has it."""
        self._counted = Counter(found) + self._since
        self._total = self._counted.total()
        self.grew = self._total > 0
