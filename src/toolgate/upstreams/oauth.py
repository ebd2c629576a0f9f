"""Tokens for a server that wants them. A token is for one server, and goes to it alone."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from toolgate import clock
from toolgate.gcra import Meter, limit
from toolgate.net.client import Streaming
from toolgate.upstreams import discovery
from toolgate.upstreams.failures import AwayError

# A server can refuse every token, or want more with every call: whoever gives them is not asked as
# often as it does.
_OFTEN = limit("token", 10, 60.0)
# Answers to the tokens before can still be on their way.
_REMEMBERED = 3


class Token(NamedTuple):
    """What was given, for which scopes; `secrets` is what it was given for."""

    text: str
    scopes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Logs and errors have no token.
        return f"Token(for {' '.join(self.scopes)!r})"


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
        self._past: deque[str] = deque(maxlen=_REMEMBERED)
        self._asking: asyncio.Task[None] | None = None
        self._meter = Meter()
        self._why = "it takes none of the tokens that it is given."

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        text = self._token.text
        return {"Authorization": f"Bearer {text}"} if text else {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its answers must not say."""
        return tuple(filter(None, (self._token.text, *self._past, *self._token.secrets)))

    async def met(self, answer: Streaming, sent: Mapping[str, str]) -> bool:
        """A new token, where one can help; another one since the request is new enough."""
        said = discovery.challenge(answer.headers.get("www-authenticate", ""))
        is_too_little = answer.status == 403
        if is_too_little and said.get("error") != "insufficient_scope":
            return False
        if self.headers and sent.get("Authorization") != self.headers["Authorization"]:
            return True
        held = self._token.scopes if is_too_little else ()
        wanted = said.get("scope", "").split()
        if held and wanted and set(wanted) <= set(held):
            # It was asked for already.
            return False
        if self._asking is None:
            self._ask(said, held)
        await self._asked()
        return True

    def close(self) -> None:
        """Nobody waits for one any more."""
        if self._asking is not None:
            self._asking.cancel()

    def _ask(self, said: Mapping[str, str], held: tuple[str, ...]) -> None:
        """Begin, once for all who find that they need one; who stops waiting ends it for none."""
        if self._meter.take((_OFTEN,), clock.monotonic_ns()) is not None:
            raise AwayError(self._why, f"{self._why} It wanted too many in a short time.")
        self._asking = asyncio.create_task(self._renewed(said, held))
        self._asking.add_done_callback(self._ended)

    async def _asked(self) -> None:
        asking = self._asking
        if asking is None:
            return
        await asyncio.wait({asking})
        if asking.cancelled():
            raise AwayError("it is closed.")
        error = asking.exception()
        if isinstance(error, AwayError):
            # Each its own.
            raise AwayError(error.why, error.detail) from None
        if error is not None:
            raise error

    async def _renewed(self, said: Mapping[str, str], held: tuple[str, ...]) -> None:
        token = await self._grant.token(said, held)
        self._past.append(self._token.text)
        self._token = token

    def _ended(self, done: "asyncio.Task[None]") -> None:
        self._asking = None
        if not done.cancelled() and isinstance(error := done.exception(), AwayError):
            self._why = error.why
