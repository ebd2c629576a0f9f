"""How much a server may ask of us by itself."""

from toolgate import clock

# Answers under way at a time. Whoever asks more waits until some have arrived.
MOST_OPEN = 64
# A server that is at work asks now and then; one that does nothing else is none.
_MOST, _WINDOW_NS = 1_000, 10_000_000_000


class Flood:
    """Counts what one connection asks, and says when it is enough."""

    def __init__(self) -> None:
        self._count = 0
        self._since_ns = 0
        self.is_over = False

    def asked(self) -> None:
        """One more."""
        now = clock.monotonic_ns()
        if now - self._since_ns > _WINDOW_NS:
            self._count, self._since_ns = 0, now
        self._count += 1
        if self._count > _MOST:
            self.is_over = True

    def end(self) -> None:
        """It does not even take the answers."""
        self.is_over = True
