"""Server-Sent Events, read from pieces of any size."""

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
_MOST = 32 * 1024 * 1024
_LONGEST_RETRY = 60_000


class Event(NamedTuple):
    """One message. `id` is what the stream was at when it came."""

    name: str
    data: bytes


class EndlessError(Exception):
    """An event that is far too long."""


class Events:
    """What has come so far of one stream. `last` and `retry` are as its server set them."""

    def __init__(self) -> None:
        self.last = ""
        # Seconds to wait before coming back, where the server has said it.
        self.retry: float | None = None
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._is_first = True

    def feed(self, piece: bytes) -> list[Event]:
        """The events that are whole now."""
        raw = self._rest + piece
        if self._is_first:
            if len(raw) < 3 and b"\xef\xbb\xbf".startswith(raw):
                self._rest = raw
                return []
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            self._is_first = False
        # A return at the very end may be half of a line's end.
        held = b"\r" if raw.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(raw[: len(raw) - len(held)])
        self._rest = rest + held
        if len(self._rest) + self._size > _MOST:
            raise EndlessError
        found: list[Event] = []
        for line in lines:
            if line:
                self._take(line)
            else:
                self._finish(found)
        return found

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
            if self._size > _MOST:
                raise EndlessError
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self.last = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = min(int(value), _LONGEST_RETRY) / 1_000

    def _finish(self, found: list[Event]) -> None:
        data = b"\n".join(self._data)
        # One without data only says where the stream is.
        if data:
            found.append(Event(self._name or "message", data))
        self._name, self._data, self._size = "", [], 0
