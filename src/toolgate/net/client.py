"""The one HTTP client: bounded in time and size, no redirects, no proxies from the environment."""

from collections.abc import Mapping
from typing import NamedTuple

import aiohttp

from toolgate.errors import SourceUnavailable

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
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, *, headers: Mapping[str, str], most: int) -> Response:
        """Fetch; an answer of more than `most` bytes is refused while it comes in."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout), trust_env=False
            )
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
                body = bytearray()
                async for chunk in answer.content.iter_chunked(65_536):
                    body += chunk
                    if len(body) > most:
                        raise SourceUnavailable(f"{url} sends more than {most:,} bytes.")
                return Response(answer.status, answer.headers, bytes(body))
        except TimeoutError:
            message = f"{url} did not answer within {self._timeout:g} s."
            raise SourceUnavailable(message) from None
        except (aiohttp.ClientError, ValueError) as error:
            message = f"{url} cannot be fetched ({type(error).__name__})."
            raise SourceUnavailable(message) from None

    async def close(self) -> None:
        """Let connections go."""
        if self._session is not None:
            await self._session.close()
