"""Who waits for the end of a call: so many of a key, and of all. Each holds a connection."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from toolgate.errors import RateLimited
from toolgate.runtime import Runtime

MOST_OF_KEY = 64
MOST = 512
_AGAIN_S = 5


class Waiting:
    """Those of one house, by their keys."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    @contextmanager
    def one(self, key: str) -> Generator[None]:
        """One more waits as long as this is open; `RateLimited` where there are too many."""
        if self._of[key] >= MOST_OF_KEY or self._of.total() >= MOST:
            raise RateLimited(
                f"Too many wait here for the end of a call: {MOST_OF_KEY} of a key, and {MOST} of "
                "all. Ask without 'wait_s', or again when some of them are answered.",
                retry_after=_AGAIN_S,
            )
        self._of[key] += 1
        try:
            yield
        finally:
            self._of[key] -= 1
            # A key that waits for nothing is not remembered.
            self._of += Counter()


_houses: WeakKeyDictionary[Runtime, Waiting] = WeakKeyDictionary()


def waiting(gate: Runtime) -> Waiting:
    """Those of this house."""
    return _houses.setdefault(gate, Waiting())
