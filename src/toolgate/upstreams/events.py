"""Server-Sent Events, read from pieces of any size."""

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
MOST = 32 * 1024 * 1024
# It goes back in a header.
_MOST_ID = 1_024
_LONGEST_RETRY = 60_000
# What comes at once has a few hundred kilobytes. Made of lines alone, all others would wait for it.
_MOST_LINES = 20_000
_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One message. `id` is what the stream was at when it came."""

    name: str
    data: bytes


class EndlessError(Exception):
    """An event that is far too long, or far too many lines at once."""


class Events:
    """What has come so far of one stream. `last` and `retry` are as its server set them."""

    def __init__(self, most: int = MOST) -> None:
        """`most` bytes are in one event."""
        self._most = most
        self.last = ""
        # Seconds to wait before coming back, where the server has said it.
        self.retry: float | None = None
        self.begin()

    def begin(self) -> None:
        """Another stream, that goes on where `last` is. Half an event of the one before is gone."""
        self._rest = bytearray()
        self._name = ""
        self._id = self.last
        self._data: list[bytes] = []
        self._size = 0
        self._is_first = True
        self._after_return = False
        # Of what was fed last.
        self.lines = 0

    def feed(self, piece: bytes) -> list[Event]:
        """The events that are whole now. Only what is new is looked at."""
        if self._is_first:
            piece = bytes(self._rest) + piece
            if len(piece) < 3 and _MARK.startswith(piece):
                self._rest = bytearray(piece)
                return []
            piece = piece.removeprefix(_MARK)
            self._rest.clear()
            self._is_first = False
        if self._after_return and piece:
            # The other half of a line's end.
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if piece.endswith(b"\r"):
            self._after_return = True
        if piece.count(b"\n") > _MOST_LINES or piece.count(b"\r") > _MOST_LINES:
            raise EndlessError
        first, *lines = _LINE_END.split(piece)
        self.lines = len(lines)
        self._rest += first
        found: list[Event] = []
        for line in lines:
            whole = bytes(self._rest)
            self._rest = bytearray(line)
            if whole:
                self._take(whole)
            else:
                self._finish(found)
        if len(self._rest) + self._size > self._most:
            raise EndlessError
        return found

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            # Lines count too: empty ones without end would fill the memory as well.
            self._size += len(value) + 1
            if self._size > self._most:
                raise EndlessError
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value and len(value) <= _MOST_ID:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = min(int(value), _LONGEST_RETRY) / 1_000

    def _finish(self, found: list[Event]) -> None:
        data = b"\n".join(self._data)
        # One without data only says where the stream is.
        if data:
            found.append(Event(self._name or "message", data))
        # Not before: of an event that breaks off, the next stream has to begin with it.
        self.last = self._id
        self._name, self._data, self._size = "", [], 0
