"""Streams that are over, kept for who comes back: so many bytes, and the oldest go first."""

from collections import OrderedDict
from collections.abc import Callable

from toolgate.server.mcp.sse import Stream

# Of one session; its newest stays all the same, for it is what a client comes back for.
MOST_OF_SESSION = 4 * 1024 * 1024
# Of all sessions of one key together.
MOST_OF_KEY = 64 * 1024 * 1024


class Kept:
    """Those of some sessions. Who keeps too much is told which ones to let go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: OrderedDict[Stream, tuple[int, Callable[[Stream], None]]] = OrderedDict()
        self._bytes = 0

    def add(self, stream: Stream, drop: Callable[[Stream], None], *, spare: bool = False) -> None:
        """One more; `spare` it, however large it is."""
        self._all[stream] = stream.size, drop
        self._bytes += stream.size
        while self._bytes > self._most and len(self._all) > int(spare):
            oldest, (size, let_go) = self._all.popitem(last=False)
            self._bytes -= size
            let_go(oldest)

    def discard(self, stream: Stream) -> None:
        """It is kept no longer."""
        size, _drop = self._all.pop(stream, (0, None))
        self._bytes -= size
