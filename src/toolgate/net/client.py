"""The one HTTP client: bounded in time and size, no redirects, no proxies from the environment."""

from collections.abc import Mapping
from typing import NamedTuple

import aiohttp

from toolgate.errors import SourceUnavailable
from toolgate.net.address import shown

_TIMEOUT = 10.0


class Response(NamedTuple):
    """An answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Made once and kept: a session is what costs."""

    def __init__(self, *, timeout: float = _TIMEOUT) -> None:
        self._timeout = timeout
        self._bound = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, *, headers: Mapping[str, str], most: int) -> Response:
        """Fetch; an answer of more than `most` bytes is refused while it comes in."""
        return await self._sent("GET", url, headers, None, most, self._timeout)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        most: int,
        seconds: float | None = None,
    ) -> Response:
        """Send what may be repeated: where a kept connection had gone, it is sent once more."""
        limit = self._timeout if seconds is None else seconds
        try:
            return await self._sent(method, url, headers, body, most, limit)
        except _Gone:
            return await self._sent(method, url, headers, body, most, limit)

    async def _sent(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        most: int,
        seconds: float,
    ) -> Response:
        timeout = self._bound if seconds == self._timeout else aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._opened().request(
                method, url, headers=headers, data=body, allow_redirects=False, timeout=timeout
            ) as answer:
                return Response(answer.status, answer.headers, await _body(answer, most))
        except TimeoutError:
            message = f"{shown(url)} did not answer within {seconds:g} s."
            raise SourceUnavailable(message) from None
        except _Refused as refused:
            raise SourceUnavailable(f"{shown(url)} {refused}.") from None
        except (aiohttp.ClientError, ValueError) as error:
            message = f"{shown(url)} cannot be fetched ({type(error).__name__})."
            gone = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
            kind = _Gone if gone else SourceUnavailable
            raise kind(message) from None

    async def close(self) -> None:
        """Let connections go."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=self._bound,
                cookie_jar=aiohttp.DummyCookieJar(),
                # A small compressed answer can be a large one; none is asked for.
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


class _Gone(SourceUnavailable):
    """The other side had closed the connection, or there is none."""


class _Refused(Exception):
    """An answer that is not taken."""


async def _body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _Refused("sends a compressed answer, which was not asked for")
    body = bytearray()
    async for chunk in answer.content.iter_chunked(65_536):
        body += chunk
        if len(body) > most:
            raise _Refused(f"sends more than {most:,} bytes")
    return bytes(body)
