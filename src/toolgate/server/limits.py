"""How much a connection may send before anyone knows who it is, and how long it may take for it."""

import fcntl
import itertools
import sys
import termios
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from contextlib import suppress

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from toolgate.server.crowded import CROWDED
from toolgate.server.problems import wire_problem
from toolgate.server.whole import EXTENSION, Whole

MAX_HEADER_BYTES = 64 * 1024
HEADER_SECONDS = 10.0
# Longer than body.SECONDS, which ends with a sentence; this one ends what nobody reads.
BODY_SECONDS = 40.0
# A connection over which nothing is asked for so long is closed.
IDLE_SECONDS = 5.0
# A connection whose peer takes nothing of what it is told for so long is cut off.
WRITE_SECONDS = 30.0
# More at once are told to come back later.
MAX_CONCURRENT = 2_000
# A request that is on its way while the server is told to end is answered; nobody sends longer.
LAST_SECONDS = 0.25
# The parser copies an unfinished header with every piece, so it gets few and the count is exact.
_PIECE = 16 * 1024
# Whoever looks after the server is answered also when nobody else is.
_HEALTH = (b"/healthz", b"/readyz")
_arrivals = itertools.count()


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's own, with an end to headers, to waiting and to targets that are not paths."""

    # Bytes since the parser last had something to show for them.
    _unfinished = 0
    # How long what is being sent may take; nothing is being sent at 0.
    _allowed = 0.0
    _timed = 0.0
    _timer: TimerHandle | None = None
    _is_ending = False
    # Since when nothing was asked, and what looks at that: one for many requests.
    _idle_since = 0.0
    _idle: TimerHandle | None = None
    # What was not taken yet at the last look, and what looks: only while there is too much of it.
    _untaken = 0
    _taking: TimerHandle | None = None
    _is_hurried = False
    # What is answered while others wait behind it: uvicorn knows only the last of them.
    _first: RequestResponseCycle | None = None
    # How many there may be at once; uvicorn's own words for it are no problem of ours.
    _most: int | None = None
    arrival = 0

    def connection_made(self, transport: Transport) -> None:
        """A connection that never says anything is not kept either."""
        super().connection_made(transport)
        self.arrival = next(_arrivals)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        if self._most and len(self.connections) >= self._most:
            self._make_room()
        self._allowed = HEADER_SECONDS
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        self._allowed = 0.0
        self._watch()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._trust()
        if self._first is not None and not self._first.response_complete:
            self._first.disconnected = True
            self._first.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and stop when a header has no end."""
        for piece in (data,) if len(data) <= _PIECE else _pieces(data):
            self._unfinished += len(piece)
            self._feed(piece)
            if self.transport.is_closing():
                return
            if self._unfinished > MAX_HEADER_BYTES:
                self._refuse("headers_too_large")
                return
        # Line ends between two requests begin nothing, yet they end uvicorn's own waiting.
        if self._unfinished and not self._allowed:
            self._allowed = HEADER_SECONDS
        self._watch()

    def on_message_begin(self) -> None:
        """A request's first byte."""
        super().on_message_begin()
        self._allowed = HEADER_SECONDS

    def on_headers_complete(self) -> None:
        """Who asks, and for what, is known."""
        # A whole URL names a host that nothing here would compare with ours.
        if not self.url.startswith(b"/"):
            raise ValueError("the target is not a path")
        if self.parser.should_upgrade():
            # It offers nothing: it wants to be connected with somebody else.
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("this is no proxy")
            return
        self._unfinished = 0
        self._allowed = BODY_SECONDS
        app, before = self.app, self.cycle
        if self._is_crowded() and self.url.partition(b"?")[0] not in _HEALTH:
            self.app = CROWDED
        super().on_headers_complete()
        self.app = app
        if len(self.pipeline) == 1:
            self._first = before
        # What comes behind a body is nobody's: who asks was decided by what came before it.
        self.headers = []
        self.scope["extensions"] = {EXTENSION: Whole(self.cycle)}  # pyright: ignore[reportGeneralTypeIssues]
        if self._is_ending:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """The body's size is the reader's affair."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request's last byte."""
        if self.parser.should_upgrade():
            return
        self._unfinished = 0
        self._allowed = 0.0
        super().on_message_complete()
        if self.cycle.response_complete:
            # Answered before it was whole: no answer comes that would begin the wait.
            self._rest()

    def on_response_complete(self) -> None:
        """The next request may come, or nothing for a while.

        A timer for each answer, set now and cancelled by the next request, is what uvicorn has.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self.part()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._first, app = self.pipeline.pop()
            self._start_asgi_task(self._first, app)
            return
        self._rest()

    def pause_writing(self) -> None:
        """More is told than is taken."""
        super().pause_writing()
        if self._is_hurried:
            self.transport.abort()
        else:
            self._distrust()

    def resume_writing(self) -> None:
        """It was taken."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._trust()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the parser's words help nobody
        """Not HTTP, or not for us."""
        self._refuse("malformed_request")

    def shutdown(self) -> None:
        """What has begun is answered, and what is on its way; half a request begins nothing."""
        self._is_ending = True
        if self._is_answering():
            super().shutdown()
        elif self._is_sending():
            self.transport.close()
        else:
            # To close it now would cut off a request that its sender believes to be taken.
            self.loop.call_later(LAST_SECONDS, self._leave)

    def hurry(self) -> None:
        """What is not taken by now, or not at once from now on, is waited for no longer."""
        self._is_hurried = True
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def part(self) -> None:
        """Close it; what it was told before is sent for as long as it is taken."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._distrust()

    def dismiss(self) -> None:
        """Close it; who was about to ask for something is told."""
        if self._is_sending() and not self.cycle.response_started:
            self._refuse("request_timeout")
        else:
            self.part()

    def is_silent(self) -> bool:
        """Whether nothing that it asked waits for its answer; half a request asks nothing yet."""
        return not self._is_answering()

    def silence(self) -> tuple[int, float, int]:
        """The least of many is the longest; a loop's clock has no parts of a millisecond."""
        return bool(self.cycle) + self._is_sending(), self._idle_since, self.arrival

    def _feed(self, piece: bytes) -> None:
        """An offer to go on in another protocol is not taken, and the request stands.

        The parser reads nothing behind one: another goes on, as if it had not been made.
        """
        try:
            while True:
                try:
                    self.parser.feed_data(piece)
                except HttpParserUpgrade as offer:
                    piece = self._without_offer() + piece[offer.args[0] :]
                    self.parser = HttpRequestParser(self)
                    # As uvicorn has it: what comes behind the last request takes it nothing away.
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                else:
                    return
        except HttpParserError:
            self.send_400_response("")

    def _without_offer(self) -> bytes:
        """The head of the request that was read last, as it would have been sent without."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b\r\n" % one for one in self.headers if one[0] != b"upgrade"]
        return b"".join((*lines, b"\r\n"))

    def _make_room(self) -> None:
        """Whoever has asked for nothing yet goes before whoever wants to, the longest silent first.

        Then whoever has their answer, then who has sent half of what they ask. Connections cost
        nothing; many that say nothing would keep everybody else out.
        """
        silent = [one for one in self.connections if isinstance(one, LimitedProtocol)]
        silent = [one for one in silent if one is not self and one.is_silent()]
        if silent:
            oldest = min(silent, key=LimitedProtocol.silence)
            # At once: the system tells of its end only later.
            self.connections.discard(oldest)
            oldest.dismiss()

    def _leave(self) -> None:
        if not self._is_answering():
            self.part()

    def _rest(self) -> None:
        self._idle_since = self.loop.time()
        if self._idle is None:
            self._idle = self.loop.call_later(IDLE_SECONDS, self._look)

    def _distrust(self) -> None:
        if self._taking is None:
            self._untaken = self._owed()
            self._taking = self.loop.call_later(WRITE_SECONDS, self._check)

    def _trust(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _check(self) -> None:
        """Whether anything was taken since the last look."""
        self._taking = None
        if self._owed() < self._untaken:
            self._distrust()
        else:
            self.transport.abort()

    def _owed(self) -> int:
        """What the peer has not taken yet: ours, and what the system keeps for it."""
        kept = bytearray(4)
        # Where the system does not tell, what it takes from us has to do.
        with suppress(OSError, ValueError):
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, kept)
        return self.transport.get_write_buffer_size() + int.from_bytes(kept, sys.byteorder)

    def _watch(self) -> None:
        """One timer for each part that takes more than one piece; most requests need none."""
        if self._allowed == self._timed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = self._allowed
        if self._timed:
            self._timer = self.loop.call_later(self._timed, self._expire)

    def _expire(self) -> None:
        self._timer, self._timed = None, 0.0
        if self._is_answering():
            # What comes after it can wait as long as the tool does.
            self._watch()
        else:
            self.part()

    def _look(self) -> None:
        """Whether nobody has asked for anything for so long that nobody will."""
        self._idle = None
        if self._allowed or self._is_answering():
            # Its answer begins the wait anew.
            return
        left = self._idle_since + IDLE_SECONDS - self.loop.time()
        if left > 0:
            self._idle = self.loop.call_later(left, self._look)
        else:
            self.part()

    def _is_crowded(self) -> bool:
        most = self._most
        return most is not None and (len(self.connections) >= most or len(self.tasks) >= most)

    def _is_sending(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete and self.cycle.more_body

    def _is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""
        if self.pipeline:
            return True
        return bool(self.cycle) and not (self.cycle.response_complete or self.cycle.more_body)

    def _refuse(self, code: str) -> None:
        # Into the middle of another request's answer it would only be noise.
        if not self._is_answering():
            status, body = wire_problem(code)
            head = b"content-type: application/problem+json\r\ncontent-length: %d\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + b"connection: close\r\n\r\n" + body)
        self.part()


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
