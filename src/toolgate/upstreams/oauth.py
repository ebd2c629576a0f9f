"""Tokens for a server that wants them. A token is for one server, and goes to it alone."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from toolgate.net.client import Streaming
from toolgate.upstreams import discovery


class Token(NamedTuple):
    """What was given, for which scopes; `secrets` is what it was given for."""

    text: str
    scopes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


class Grant(Protocol):
    """How tokens are had: with a person's consent, or for who we are ourselves."""

    async def token(self, said: Mapping[str, str], held: tuple[str, ...]) -> Token:
        """A new one. `said`: what the server says of it; `held`: scopes that were not enough."""
        ...


class OAuth:
    """Answers the challenges of one server."""

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self._token = Token("")
        self._last = ""
        self._asking = asyncio.Lock()

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        text = self._token.text
        return {"Authorization": f"Bearer {text}"} if text else {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its answers must not say: an answer to the token before can still be on its way."""
        return tuple(filter(None, (self._token.text, self._last, *self._token.secrets)))

    async def met(self, answer: Streaming, sent: Mapping[str, str]) -> bool:
        """A new token, where one can help; another one since the request is new enough."""
        said = discovery.challenge(answer.headers.get("www-authenticate", ""))
        is_too_little = answer.status == 403
        if is_too_little and said.get("error") != "insufficient_scope":
            return False
        async with self._asking:
            if self.headers and sent.get("Authorization") != self.headers["Authorization"]:
                return True
            held = self._token.scopes if is_too_little else ()
            last = self._token.text
            self._token = await self._grant.token(said, held)
            self._last = last
            return True
