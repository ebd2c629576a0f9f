"""How many calls are queued, as far as this process knows: counted now and then, added between.

Of its own calls it never counts too few; of those that others queue, what they did since it counted
last is missing.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager


class Crowd:
    """So many may wait in all, and of one tenant."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._counted: Counter[str] = Counter()
        self._total = 0
        # Those that are on their way: whoever counts finds them, or not.
        self._coming: Counter[str] = Counter()
        # Those that arrived while somebody counts: nobody knows whether they are in what is found.
        self._since: Counter[str] = Counter()
        # Whether there can be more than were counted.
        self.grew = True

    @contextmanager
    def place(self, tenant: str) -> Generator[bool]:
        """Whether there is one more place: taken, and on its way as long as this is open."""
        if self._total >= self._most or self._counted[tenant] >= self._most_of_one:
            yield False
            return
        self._total += 1
        self._counted[tenant] += 1
        self._coming[tenant] += 1
        self.grew = True
        try:
            yield True
        finally:
            self._coming[tenant] -= 1
            self._since[tenant] += 1

    def begin(self) -> None:
        """The store is asked from now on."""
        self._since.clear()

    def count(self, found: Mapping[str, int]) -> None:
        """As the store has it."""
        # Those that are over keep no name here.
        self._coming = +self._coming
        self._counted = Counter(found) + self._since + self._coming
        self._total = self._counted.total()
        self.grew = self._total > 0
