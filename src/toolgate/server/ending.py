"""Word that the server is about to end. What runs is finished; what only waits is answered."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Ending:
    """Told once. Whoever holds a request open for something that may never come listens here."""

    def __init__(self) -> None:
        self._listeners: set[Callable[[], object]] = set()
        self.has_begun = False

    def begin(self) -> None:
        """From now on nobody waits for what is not on its way."""
        self.has_begun = True
        for tell in tuple(self._listeners):
            tell()

    @contextmanager
    def told(self, tell: Callable[[], object]) -> Generator[None]:
        """While this is open, `tell` is called when the end begins; at once if it has."""
        if self.has_begun:
            tell()
        self._listeners.add(tell)
        try:
            yield
        finally:
            self._listeners.discard(tell)


# A signal is the whole process's, and so is this.
ENDING = Ending()
