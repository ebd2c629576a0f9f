"""How much a connection may send before anyone knows who it is, and how long it may take for it."""

import itertools
from asyncio import TimerHandle, Transport
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from toolgate.server.crowded import CROWDED
from toolgate.server.headers import CLOSED
from toolgate.server.problems import wire_problem
from toolgate.server.reply import PROBLEM
from toolgate.server.taking import Taking
from toolgate.server.whole import EXTENSION, Whole

MAX_HEADER_BYTES = 64 * 1024
HEADER_SECONDS = 10.0
# Longer than body.SECONDS, which ends with a sentence; this one ends what nobody reads.
BODY_SECONDS = 40.0
# A connection over which nothing is asked for so long is closed.
IDLE_SECONDS = 5.0
# More at once are told to come back later.
MAX_CONCURRENT = 2_000
# So many requests wait behind one that is answered; whoever sends more asks again for the rest.
MAX_PIPELINED = 64
# A request that is on its way while the server is told to end is answered; nobody sends longer.
LAST_SECONDS = 0.25
# The parser copies an unfinished header with every piece, so it gets few and the count is exact.
_PIECE = 16 * 1024
# Whoever looks after the server is answered also when nobody else is.
_HEALTH = (b"/healthz", b"/readyz")
# What every refusal says that is written here and not by the application.
_REFUSED = b"".join(b"%b: %b\r\n" % one for one in ((b"content-type", PROBLEM), *CLOSED))
_arrivals = itertools.count()
# Of each server, the connections that wait for no answer.
_silent_of: "WeakKeyDictionary[ServerState, set[LimitedProtocol]]" = WeakKeyDictionary()


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
    _taking: Taking
    _is_hurried = False
    # What is answered while others wait behind it: uvicorn knows only the last of them.
    _first: RequestResponseCycle | None = None
    # How many there may be at once; uvicorn's own words for it are no problem of ours.
    _most: int | None = None
    # Whether a request's head is read and its body is not.
    _is_in_body = False
    # Whether nothing of what still comes is read.
    _is_deaf = False
    # Who may have to go: nothing that they asked waits for its answer; half a request asks nothing.
    _silent: "set[LimitedProtocol]"
    arrival = 0

    def connection_made(self, transport: Transport) -> None:
        """A connection that never says anything is not kept either."""
        super().connection_made(transport)
        self.arrival = next(_arrivals)
        self._taking = Taking(transport, self.loop)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._silent = _silent_of.setdefault(self.server_state, set())
        self._silent.add(self)
        if self._most and len(self.connections) > self._most:
            self._make_room()
        self._allowed = HEADER_SECONDS
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        self._silent.discard(self)
        self._allowed = 0.0
        self._watch()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._taking.trust()
        if self._first is not None and not self._first.response_complete:
            self._first.disconnected = True
            self._first.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and stop when a header has no end."""
        for piece in (data,) if len(data) <= _PIECE else _pieces(data):
            if self._is_deaf:
                return
            self._unfinished += len(piece)
            self._feed(piece)
            if self._is_deaf or self.transport.is_closing():
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
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests wait for their answers")
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
        self._is_in_body = True
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
        self._is_in_body = False
        super().on_message_complete()
        if self.cycle.response_complete:
            # Answered before it was whole: no answer comes that would begin the wait.
            self._rest()
        else:
            self._silent.discard(self)

    def on_response_complete(self) -> None:
        """The next request may come, or nothing for a while.

        A timer for each answer, set now and cancelled by the next request, is what uvicorn has.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            if self in self.connections:
                self._silent.add(self)
            self.part()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._first, app = self.pipeline.pop()
            self._start_asgi_task(self._first, app)
            if self._first.more_body:
                self._silent.add(self)
            return
        self._silent.add(self)
        self._rest()

    def pause_writing(self) -> None:
        """More is told than is taken."""
        super().pause_writing()
        if self._is_hurried:
            self.transport.abort()
        else:
            self._taking.watch()

    def resume_writing(self) -> None:
        """It was taken."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._taking.trust()

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
            self._taking.watch()

    def dismiss(self) -> None:
        """Close it; who was about to ask for something is told.

        It is counted no more, so nothing of it is kept: not even what it has not taken.
        """
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self._is_sending() and not self.cycle.response_started:
            self._refuse("request_timeout")
        else:
            self.part()

    def silence(self) -> tuple[bool, int, float, int]:
        """The least of many is the longest; a loop's clock has no parts of a millisecond."""
        is_taking = self.transport.get_write_buffer_size() > 0
        return is_taking, bool(self.cycle) + self._is_sending(), self._idle_since, self.arrival

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

        Then whoever has their answer, then who has sent half of what they ask, then who has not
        taken all of their answer. Connections cost nothing; many that say nothing would keep
        everybody else out.
        """
        others = (one for one in self._silent if one is not self)
        oldest = min(others, key=LimitedProtocol.silence, default=None)
        if oldest is not None:
            # At once: the system tells of its end only later.
            self.connections.discard(oldest)
            self._silent.discard(oldest)
            oldest.dismiss()

    def _leave(self) -> None:
        if not self._is_answering():
            self.part()

    def _rest(self) -> None:
        self._idle_since = self.loop.time()
        if self._idle is None:
            self._idle = self.loop.call_later(IDLE_SECONDS, self._look)

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
        """Whether so many others are answered; who asks nothing makes room first.

        What runs on for who has gone counts, too: as many again may.
        """
        most = self._most
        if most is None:
            return False
        if len(self.connections) > most:
            self._make_room()
        return len(self.connections) > most or len(self.tasks) >= 2 * most

    def _is_sending(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete and self.cycle.more_body

    def _is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""
        if self.pipeline:
            return True
        return bool(self.cycle) and not (self.cycle.response_complete or self.cycle.more_body)

    def _refuse(self, code: str) -> None:
        if self._is_answering():
            self._end_with_answers()
            return
        # Into the middle of its own answer, or behind it, it would only be noise.
        if not (self._is_in_body and self.cycle.response_started):
            status, body = wire_problem(code)
            length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + _REFUSED + length + body)
        self.part()

    def _end_with_answers(self) -> None:
        """What was asked before is answered; then it is closed, and nothing more is read."""
        self._is_deaf = True
        if self._is_in_body and self._first is not None:
            # The last one cannot be read to its end; what is answered stands before it.
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else self._first
        self.cycle.keep_alive = False
        # What comes is thrown away: what nobody reads would cost the peer the answer at the end.
        self.flow.resume_reading()
        self._allowed = 0.0
        self._watch()


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
