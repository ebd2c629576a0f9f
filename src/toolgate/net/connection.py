"""One connection of HTTP/1.1: a request at a time, an answer within bounds, kept afterwards.

Traps of `httptools`, which parses: it cannot be told that an answer to HEAD has no body, so the
parser is replaced; it does not say that an answer ended with its connection, so that is known from
the headers; it joins a header that comes in pieces without any bound, trailers too, so bytes are
counted before it gets them.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from toolgate.net.errors import Gone, Late, Lost
from toolgate.net.headers import Headers
from toolgate.net.unpacking import CODINGS

_MOST_HEAD = 65_536
# A chunk of one byte has five around it; what has much more around it is no answer.
_MOST_AROUND = 16
# While so much waits to be read, no more is taken from the wire.
_MUCH = 262_144
_JOINED = 65_536
# So long a connection is kept unused, unless the far side says that it closes it earlier.
_KEPT_NS = 60_000_000_000
_TIMEOUT = re.compile(rb"timeout=([0-9]{1,6})\b")


class Exchange:
    """One answer as it comes in: whole within `most`, or piece by piece where it is `streamed`."""

    __slots__ = (
        *("begun", "bodiless", "done", "has_head", "headers", "most", "packed", "pieces"),
        *("problem", "size", "status", "streamed", "until_end", "waiter", "waiting"),
    )

    def __init__(self, method: str, most: int, *, streamed: bool, packed: bool = False) -> None:
        self.bodiless = method == "HEAD"
        # Whether its reader unpacks what comes compressed.
        self.packed = packed
        self.most = most
        self.streamed = streamed
        self.begun = self.has_head = self.done = self.until_end = False
        self.status = 0
        self.headers: Headers
        self.pieces: list[bytes] = []
        # All that came of the body, and what of it was not read yet.
        self.size = self.waiting = 0
        self.problem: Lost | None = None
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Whoever waits for more looks again."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Connection(asyncio.Protocol):
    """To one checked address. What is odd about an answer ends it."""

    def __init__(self, on_free: "Callable[[Connection], None]") -> None:
        self._on_free = on_free
        self._transport: asyncio.Transport
        self._parser = HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._raw: list[tuple[bytes, bytes]] = []
        self._around = 0
        self._keep = self._extra = self._interim = self._paused = False
        self._ended = self.closed = False
        # For the pool: until when it may work, since when it is idle, how long it may be.
        self.until_ns = self.idle_ns = 0
        self.kept_ns = _KEPT_NS

    # What its user does.

    def begin(self, head: bytes, body: bytes | None, exchange: Exchange) -> None:
        """Write a request. From here on it may have been done."""
        self._exchange = exchange
        self._around = 0
        self._keep = self._extra = False
        if body is None:
            self._transport.write(head)
        elif len(body) <= _JOINED:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    async def more(self, exchange: Exchange) -> None:
        """Wait until there is more of the answer. Whoever gives up waiting ends the connection."""
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        waiter = exchange.waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        except BaseException:
            # With a whole answer the connection may be another's by now.
            if self._exchange is exchange:
                self.end()
            raise

    @property
    def is_usable(self) -> bool:
        """Whether another request can be written."""
        return not self.closed and self._exchange is None and not self._transport.is_closing()

    def expire(self) -> None:
        """Its time is over."""
        self._fail(Late("does not answer in time"))

    def end(self) -> None:
        """Close it now; what was under way is lost."""
        self.closed = True
        self.until_ns = 0
        self._exchange = None
        self._transport.abort()

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            # Nobody has asked: it is no answer to whatever is asked next.
            self.end()
            return
        exchange.begun = True
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._fail(Lost("switches to another protocol"))
            return
        except HttpParserError:
            if not exchange.done:
                self._fail(exchange.problem or Lost("sends what is no HTTP answer"))
                return
            self._extra = True
        if exchange.done:
            self._finish(exchange)
        elif self._around > _MOST_HEAD + _MOST_AROUND * exchange.size:
            self._fail(Lost("sends headers that are too long"))
        elif exchange.streamed and exchange.has_head:
            if exchange.waiting > _MUCH and not self._paused:
                self._paused = True
                self._transport.pause_reading()
            exchange.wake()

    def eof_received(self) -> None:
        self._ended = _is_said(self._transport.get_extra_info("ssl_object"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not exchange.done:
            if exchange.until_end and self._ended and exc is None:
                exchange.done = True
            elif exchange.begun:
                exchange.problem = Lost("closes the connection in the middle of its answer")
            else:
                exchange.problem = Gone("closes the connection without an answer")
            exchange.wake()
        self._on_free(self)

    # What the parser tells.

    def on_message_begin(self) -> None:
        exchange = self._exchange
        self._raw = []
        if exchange is None or exchange.done:
            self._extra = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._raw.append((name, value))

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if exchange is None or exchange.done:
            return
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200
        if self._interim:
            return
        exchange.status = status
        headers = exchange.headers = Headers(self._raw)
        exchange.problem = _unwanted(exchange, headers)
        if exchange.problem is not None:
            raise exchange.problem
        exchange.has_head = True
        self._keep = self._parser.should_keep_alive()
        if told := _TIMEOUT.search(headers.raw(b"keep-alive")):
            # A second before the far side does, so that nothing is written into its closing.
            self.kept_ns = min(_KEPT_NS, (int(told[1]) - 1) * 1_000_000_000)
        if exchange.bodiless or status in {204, 304}:
            exchange.bodiless = exchange.done = True
        elif not headers.raw(b"content-length") and not headers.raw(b"transfer-encoding"):
            exchange.until_end = True

    def on_body(self, body: bytes) -> None:
        exchange = self._exchange
        if exchange is None or exchange.done:
            self._extra = True
            return
        size = len(body)
        exchange.size += size
        exchange.waiting += size
        self._around -= size
        if exchange.size > exchange.most and not exchange.streamed:
            exchange.problem = _too_much(exchange.most)
            raise exchange.problem
        exchange.pieces.append(body)

    def on_message_complete(self) -> None:
        exchange = self._exchange
        if exchange is not None and not self._interim:
            exchange.done = True

    def _finish(self, exchange: Exchange) -> None:
        """The answer is whole: keep the connection if both sides can, and nothing is left of it."""
        self._exchange = None
        self.until_ns = 0
        if exchange.bodiless:
            self._parser = HttpResponseParser(self)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        unsent = self._transport.get_write_buffer_size()
        if not self._keep or self._extra or unsent or self._transport.is_closing():
            self.closed = True
            self._transport.abort()
        else:
            self._on_free(self)
        exchange.wake()

    def _fail(self, problem: Lost) -> None:
        exchange = self._exchange
        self.end()
        if exchange is not None:
            exchange.problem = problem
            exchange.wake()


def _is_said(tls: ssl.SSLObject | None) -> bool:
    """Whether the far side has said that it ends; under TLS, anybody on the way can end bytes."""
    if tls is None:
        return True
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False


def _unwanted(exchange: Exchange, headers: Headers) -> Lost | None:
    """What is wrong with an answer, as far as its headers tell."""
    coding = headers.raw(b"content-encoding").lower()
    if coding not in {b"", b"identity"} and not (exchange.packed and coding in CODINGS):
        return Lost("sends a compressed answer, which was not asked for")
    if headers.raw(b"transfer-encoding").lower() not in {b"", b"chunked"}:
        return Lost("sends its answer in an encoding that was not asked for")
    length = headers.raw(b"content-length")
    if length and not exchange.streamed and not exchange.bodiless and exchange.status != 304:
        try:
            too_much = int(length) > exchange.most
        except ValueError:
            return Lost("says two different lengths of its answer")
        if too_much:
            return _too_much(exchange.most)
    return None


def _too_much(most: int) -> Lost:
    return Lost(f"sends more than {most:,} bytes")
