"""The one HTTP client: guarded, bounded in time and size, no proxies, redirects only when asked."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from toolgate import clock
from toolgate.net.address import shown
from toolgate.net.connection import Connection, Exchange
from toolgate.net.credential import Attached, Credential
from toolgate.net.errors import Gone, Late, Lost, NotSent
from toolgate.net.guard import Guard
from toolgate.net.headers import Headers, head
from toolgate.net.location import Location
from toolgate.net.pool import MOST, Pool
from toolgate.net.redirect import Request, elsewhere, onward

_TIMEOUT = 10.0


class Response(NamedTuple):
    """An answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Asked(NamedTuple):
    """A request, how long it may take, and whether its answer may come compressed."""

    request: Request
    seconds: float
    until_ns: int
    packed: bool = False

    @property
    def shown(self) -> str:
        """Its address, for a message."""
        return shown(self.request.url)


class HttpClient:
    """Made once and kept: its connections are. All that it sends the guard has let through."""

    def __init__(
        self,
        guard: Guard,
        *,
        timeout: float = _TIMEOUT,
        tls: ssl.SSLContext | None = None,
        most_connections: int = MOST,
    ) -> None:
        """`most_connections` is to one host; `tls` believes others than this machine does."""
        self._guard = guard
        self._timeout = timeout
        self._pool = Pool(most=most_connections, tls=tls)

    @property
    def guard(self) -> Guard:
        """Where it may go."""
        return self._guard

    def named(self, *urls: str) -> "HttpClient":
        """One that also reaches these of an operator's. It shares the connections of this one,
        and is closed with it."""
        wider = HttpClient(self._guard.named(*urls), timeout=self._timeout)
        wider._pool = self._pool
        return wider

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        most: int,
        seconds: float | None = None,
        credentials: Sequence[Credential] = (),
        redirects: int = 0,
    ) -> Response:
        """Fetch; an answer of more than `most` bytes is refused while it comes in."""
        return await self.send(
            "GET",
            url,
            headers=headers,
            most=most,
            seconds=seconds,
            repeatable=True,
            credentials=credentials,
            redirects=redirects,
        )

    async def send(  # noqa: PLR0913  a request has that many parts
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        most: int,
        seconds: float | None = None,
        repeatable: bool = False,
        credentials: Sequence[Credential] = (),
        redirects: int = 0,
    ) -> Response:
        """Send, and read the answer whole, all within `seconds`.

        What is `repeatable` is sent once more where a kept connection had gone. `NotSent` means
        that nothing left this machine, `Lost` that it may have been done.
        """
        asked = self._asked(method, url, headers, body, credentials, seconds)
        answer = await self._whole(asked, most, repeatable=repeatable)
        hops = 0
        while redirects and (further := onward(asked.request, answer.status, answer.headers)):
            hops += 1
            if hops > redirects:
                raise Lost(f"{shown(url)} leads from one address to the next, and to no answer.")
            asked = asked._replace(request=further)
            try:
                answer = await self._whole(asked, most, repeatable=repeatable)
            except NotSent as refused:
                # The first address has had the request.
                raise Lost(elsewhere(url, refused.message)) from None
        return answer

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None,
        repeatable: bool = False,
        credentials: Sequence[Credential] = (),
        packed: bool = False,
    ) -> "Streaming":
        """Send, and read the answer piece by piece, within `async with`.

        Without `seconds` only its beginning has to come in time, and it may go on for ever.
        `packed`: pieces may come compressed, as `Content-Encoding` says; the reader unpacks them.
        """
        asked = self._asked(method, url, headers, body, credentials, seconds)
        asked = asked._replace(packed=True) if packed else asked
        return Streaming(self, asked, endless=seconds is None, repeatable=repeatable)

    async def close(self) -> None:
        """Let connections go, also those of clients that were made from this one."""
        await self._pool.close()

    def _asked(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        credentials: Sequence[Credential],
        seconds: float | None,
    ) -> Asked:
        limit = self._timeout if seconds is None else seconds
        until_ns = clock.monotonic_ns() + int(limit * 1e9)
        return Asked(Request(method, url, headers, body, credentials), limit, until_ns)

    async def _whole(self, asked: Asked, most: int, *, repeatable: bool) -> Response:
        exchange, _ = await self.begun(asked, most, streamed=False, repeatable=repeatable)
        pieces = exchange.pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return Response(exchange.status, exchange.headers, body)

    async def begun(
        self, asked: Asked, most: int, *, streamed: bool, repeatable: bool
    ) -> tuple[Exchange, Connection]:
        """Send it, and wait for the whole answer, or for its head where it is streamed."""
        request = asked.request
        location = self._guard.read(request.url)
        written = _written(request, location)
        connection = self._pool.kept(self._guard, location, surely=not repeatable)
        while True:
            is_kept = connection is not None
            if connection is None:
                connection = await self._opened(location, asked)
            exchange = Exchange(request.method, most, streamed=streamed, packed=asked.packed)
            connection.begin(written, request.body, exchange)
            self._pool.watch(connection, asked.until_ns)
            await connection.more(exchange)
            if exchange.problem is None:
                return exchange, connection
            if not (is_kept and repeatable and isinstance(exchange.problem, Gone)):
                raise told(exchange.problem, asked)
            connection = None

    async def _opened(self, location: Location, asked: Asked) -> Connection:
        left = (asked.until_ns - clock.monotonic_ns()) / 1e9
        try:
            async with asyncio.timeout(left):
                return await self._pool.fresh(self._guard, location, asked.until_ns)
        except TimeoutError:
            raise NotSent(
                f"{asked.shown} did not answer within {asked.seconds:g} s. Nothing was sent."
            ) from None


def _written(request: Request, location: Location) -> bytes:
    """The head as it goes out; secrets are put in here, and nowhere before."""
    path, headers = location.path, request.headers
    if request.credentials:
        attached = Attached(path, dict(headers))
        for one in request.credentials:
            attached = one.attach(location, attached)
        path, headers = attached
    length = None if request.body is None else len(request.body)
    return head(request.method, path, location.authority, headers, length)


def told(problem: Lost, asked: Asked) -> Lost:
    """What happened to a request, in a sentence with its address."""
    what = problem.message
    if isinstance(problem, Late):
        what = f"did not answer within {asked.seconds:g} s"
    return type(problem)(f"{asked.shown} {what}.")


class Streaming:
    """An answer while it comes. What is not read by the end of the `async with` is not fetched."""

    __slots__ = ("_asked", "_client", "_connection", "_endless", "_exchange", "_repeatable")

    def __init__(
        self, client: HttpClient, asked: Asked, *, endless: bool, repeatable: bool
    ) -> None:
        self._client = client
        self._asked = asked
        self._endless = endless
        self._repeatable = repeatable
        self._exchange: Exchange
        self._connection: Connection

    async def __aenter__(self) -> Self:
        self._exchange, self._connection = await self._client.begun(
            self._asked, 0, streamed=True, repeatable=self._repeatable
        )
        if self._endless and not self._exchange.done:
            self._connection.until_ns = 0
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        exchange = self._exchange
        if not exchange.done and exchange.problem is None:
            self._connection.end()

    @property
    def status(self) -> int:
        return self._exchange.status

    @property
    def headers(self) -> Headers:
        return self._exchange.headers

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """What has come since, in one piece."""
        exchange = self._exchange
        while not exchange.pieces:
            if exchange.problem is not None:
                raise told(exchange.problem, self._asked)
            if exchange.done:
                raise StopAsyncIteration
            await self._connection.more(exchange)
        pieces = exchange.pieces
        exchange.pieces, exchange.waiting = [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read(self, most: int) -> bytes:
        """All that is left of it; more than `most` bytes are refused while they come in."""
        found = bytearray()
        async for piece in self:
            found += piece
            if len(found) > most:
                raise Lost(f"{self._asked.shown} sends more than {most:,} bytes.")
        return bytes(found)
