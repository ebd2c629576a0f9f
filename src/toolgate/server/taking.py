"""Whether a peer takes what it is told. One that takes nothing of it for long is cut off."""

import fcntl
import sys
import termios
from asyncio import AbstractEventLoop, TimerHandle, Transport
from contextlib import suppress

# A connection whose peer takes nothing of what it is told for so long is cut off.
SECONDS = 30.0


class Taking:
    """One connection, looked at only while it is told more than it takes."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        # What was not taken yet at the last look.
        self._untaken = 0
        self._timer: TimerHandle | None = None

    def watch(self) -> None:
        """From now on something has to be taken."""
        if self._timer is None:
            self._untaken = self._owed()
            self._timer = self._loop.call_later(SECONDS, self._look)

    def trust(self) -> None:
        """It was taken, or nobody is there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Whether anything was taken since the last look."""
        self._timer = None
        if self._owed() < self._untaken:
            self.watch()
        else:
            self._transport.abort()

    def _owed(self) -> int:
        """What the peer has not taken yet: ours, and what the system keeps for it."""
        kept = bytearray(4)
        # Where the system does not tell, what it takes from us has to do.
        with suppress(OSError, ValueError):
            fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, kept)
        return self._transport.get_write_buffer_size() + int.from_bytes(kept, sys.byteorder)
