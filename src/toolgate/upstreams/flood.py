"""How much a server may ask of us, and say, by itself."""

import asyncio

from toolgate import clock

# Answers under way at a time. Whoever asks more waits until some have arrived.
MOST_OPEN = 64
# A server that is at work asks now and then; one that does nothing else is none.
_MOST, _WINDOW_NS = 1_000, 10_000_000_000
# Programs print where they should not. One that prints nothing else is no server.
_MOST_NOISE = 1_000
# What it says without being asked: so much a second, and that for so many seconds at once.
_EACH_NS, _AT_ONCE_NS = 500_000, 5_000_000_000
# Who had to be slowed down for so long, without a rest in between, is read no more.
_PATIENCE_NS = 300_000_000_000
_LEAST_PAUSE_NS = 100_000_000
# Others are served after so much of it.
_TURN = 100.0
ENDLESS = "It asks without end, or says things without end."
# What a line costs that says nothing, beside a message.
BLANK = 0.02


class Flood:
    """Counts what one connection asks and says, and says when it is enough."""

    def __init__(self) -> None:
        self._count = 0
        self._since_ns = 0
        self._said_ns = 0
        self._slowed_ns = 0
        self._turn = 0.0
        self.is_over = False

    def asked(self) -> None:
        """One more."""
        now = clock.monotonic_ns()
        if now - self._since_ns > _WINDOW_NS:
            self._count, self._since_ns = 0, now
        self._count += 1
        if self._count > _MOST:
            self.is_over = True

    async def said(self, much: float = 1.0) -> None:
        """So much more. Who says too much is read more slowly: then it has to wait itself."""
        now = clock.monotonic_ns()
        if self._said_ns <= now:
            self._said_ns, self._slowed_ns = now, 0
        self._said_ns += int(much * _EACH_NS)
        self._turn += much
        ahead_ns = self._said_ns - now - _AT_ONCE_NS
        if ahead_ns > _LEAST_PAUSE_NS:
            self._slowed_ns = self._slowed_ns or now
            if now - self._slowed_ns > _PATIENCE_NS:
                self.is_over = True
            await asyncio.sleep(ahead_ns / 1e9)
        elif self._turn >= _TURN:
            self._turn = 0.0
            await asyncio.sleep(0)

    def end(self) -> None:
        """It does not even take the answers."""
        self.is_over = True


class Noise:
    """Counts lines that are no messages: those since the last message, of the last seconds."""

    def __init__(self) -> None:
        self.count = 0
        self._since_ns = 0

    def line(self) -> None:
        """One more."""
        now = clock.monotonic_ns()
        if now - self._since_ns > _WINDOW_NS:
            self.count, self._since_ns = 0, now
        self.count += 1

    @property
    def is_all(self) -> bool:
        """Whether nothing else comes."""
        return self.count > _MOST_NOISE
