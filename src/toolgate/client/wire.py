"""The wire to a toolgate server: one session, kept; answers as JSON, problems as our own errors.

The key goes to one address and nowhere else: no redirect is followed, no proxy of the environment
is asked, no cookie is kept.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast
from urllib.parse import urlencode

import orjson

from toolgate.client.address import read_address, read_key
from toolgate.client.problem import error_of
from toolgate.errors import InvalidRequest, ServerUnreachable

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout

_CONNECT = 10.0
_TIMEOUT = 60.0
_MOST = 256 * 1024 * 1024
# A server lets go of an idle connection after five seconds; one that is just being closed is not
# to be used again.
_KEPT = 4.0
_MOST_CONNECTIONS = 256
_NEVER_GIVEN = frozenset({"authorization", "host", "content-length", "cookie"})


class Reply(NamedTuple):
    """An answer that is no problem: read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """What it says; nothing, where it has no body."""
        return orjson.loads(self.body) if self.body else None


class Wire:
    """`async with Wire(url, key) as wire: await wire.request("GET", "/v1/tools")`."""

    def __init__(
        self, url: str, key: str, *, timeout: float = _TIMEOUT, allow_http: bool = False
    ) -> None:
        """`timeout` is how long one answer may take, in seconds."""
        self._address = read_address(url, allow_http=allow_http)
        self._authorization = f"Bearer {read_key(key)}"
        self._seconds = timeout
        self._session: ClientSession | None = None

    def __repr__(self) -> str:
        return f"Wire({self._address.base!r})"

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._address.base

    @property
    def timeout(self) -> float:
        """How long one answer may take, in seconds."""
        return self._seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connections go."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Ask, and the answer as JSON. A problem is raised as the error that it tells of.

        It is sent once: whether it may be sent again is for whoever asks to say.
        `ServerUnreachable` where there is no answer; `details.sent` says whether it may have been
        read all the same.
        """
        reply = await self.ask(
            method, path, query=query, body=body, headers=headers, seconds=seconds
        )
        return _json(reply, self.url)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Reply:
        """As `request`, with the status and the headers of the answer."""
        allowed = self._seconds if seconds is None else seconds
        payload = None if body is None else _payload(body)
        async with self._opened(method, path, query, payload, headers, allowed) as answer:
            reply = Reply(answer.status, answer.headers, await _read(answer, self.url))
        self._check(reply)
        return reply

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float = _TIMEOUT,
    ) -> AsyncGenerator["ClientResponse"]:
        """An answer that goes on and on; one that says nothing for so long is given up."""
        accepts = {"Accept": "text/event-stream", **(headers or {})}
        opened = self._opened("GET", path, query, None, accepts, None, silence=silence)
        async with opened as answer:
            if answer.status != 200:
                self._check(Reply(answer.status, answer.headers, await _read(answer, self.url)))
            yield answer

    def _check(self, reply: Reply) -> None:
        if reply.status == 304 or 200 <= reply.status < 300:
            return
        if 300 <= reply.status < 400:
            raise ServerUnreachable(
                f"{self.url} sends requests elsewhere, and a key is not sent there. Connect to "
                "the address that it names, if that is yours.",
                sent=True,
                status=reply.status,
            )
        told = _object(reply)
        if told is not None and isinstance(told.get("code"), str):
            raise error_of(told)
        raise ServerUnreachable(
            f"{self.url} answers with {reply.status}, and not as a toolgate server does. Check the "
            f"address, and what stands before the server: GET {self.url}/healthz.",
            sent=True,
            status=reply.status,
            **_retry_after(reply),
        )

    @asynccontextmanager
    async def _opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        payload: bytes | None,
        headers: Mapping[str, str] | None,
        seconds: float | None,
        *,
        silence: float | None = None,
    ) -> AsyncGenerator["ClientResponse"]:
        import aiohttp  # noqa: PLC0415  a tenth of the start's time, and only of a client's
        from yarl import URL  # noqa: PLC0415  it comes with aiohttp

        sent = _headers(headers)
        sent["Authorization"] = self._authorization
        if payload is not None:
            sent["Content-Type"] = "application/json"
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT, sock_read=silence)
        url = URL(self.url + _path(path, query), encoded=True)
        try:
            async with self._opened_session(limit).request(
                method, url, headers=sent, data=payload, allow_redirects=False, timeout=limit
            ) as answer:
                yield answer
        except aiohttp.ClientConnectorCertificateError:
            raise self._gone("its certificate is not one that this machine trusts") from None
        except aiohttp.ClientConnectorError as error:
            raise self._gone(_why(error.os_error)) from None
        except aiohttp.ConnectionTimeoutError:
            raise self._gone(f"no connection within {_CONNECT:g} s") from None
        except TimeoutError:
            waited = silence if seconds is None else seconds
            raise self._gone(f"no answer within {waited:g} s", sent=True) from None
        except (aiohttp.ClientError, OSError) as error:
            why = f"the connection was lost: {type(error).__name__}"
            raise self._gone(why, sent=True) from None

    def _gone(self, why: str, *, sent: bool = False) -> ServerUnreachable:
        told = (
            "The request may have reached it all the same."
            if sent
            else f"Nothing was sent. Check the address, and that it runs: GET {self.url}/healthz."
        )
        return ServerUnreachable(f"{self.url} does not answer ({why}). {told}", sent=sent)

    def _opened_session(self, limit: "ClientTimeout") -> "ClientSession":
        if self._session is None:
            import aiohttp  # noqa: PLC0415  as above

            self._session = aiohttp.ClientSession(
                timeout=limit,
                connector=aiohttp.TCPConnector(
                    keepalive_timeout=_KEPT, limit=_MOST_CONNECTIONS, use_dns_cache=False
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # A small compressed answer can be a large one; none is asked for.
                headers={"Accept-Encoding": "identity", "User-Agent": "toolgate"},
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _path(path: str, query: Mapping[str, Any] | None) -> str:
    if not path.startswith("/"):
        raise InvalidRequest("A path of the server begins with '/': '/v1/tools'.")
    given = {name: _word(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _headers(given: Mapping[str, str] | None) -> dict[str, str]:
    headers = dict(given or {})
    for name in headers:
        if name.lower() in _NEVER_GIVEN:
            raise InvalidRequest(f"The header {name!r} is not for callers to set.")
    return headers


def _payload(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise InvalidRequest(f"This cannot be sent as JSON ({error}). Nothing ran.") from None


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).split("[", 1)[0].strip().lower()


async def _read(answer: "ClientResponse", url: str) -> bytes:
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ServerUnreachable(
            f"{url} sends a compressed answer, which was not asked for. Check what stands before "
            "the server.",
            sent=True,
        )
    body = bytearray()
    async for chunk in answer.content.iter_chunked(65_536):
        body += chunk
        if len(body) > _MOST:
            raise ServerUnreachable(f"{url} sends more than {_MOST:,} bytes.", sent=True)
    return bytes(body)


def _object(reply: Reply) -> dict[str, Any] | None:
    try:
        told = reply.json()
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", told) if isinstance(told, dict) else None


def _json(reply: Reply, url: str) -> Any:
    try:
        return reply.json()
    except orjson.JSONDecodeError:
        raise ServerUnreachable(
            f"{url} does not answer as a toolgate server does. Check the address.", sent=True
        ) from None


def _retry_after(reply: Reply) -> dict[str, float]:
    given = reply.headers.get("Retry-After", "")
    return {"retry_after": float(given)} if given.isascii() and given.isdigit() else {}
