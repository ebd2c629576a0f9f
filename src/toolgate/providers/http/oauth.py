"""Tokens for a client's own credentials: fetched once for all who wait, kept until they end."""

import asyncio
import re
from base64 import b64encode
from typing import Any, NamedTuple, cast
from urllib.parse import quote_plus, urlencode

import msgspec
import orjson

from toolgate import clock
from toolgate.errors import ProviderUnavailable, SourceUnavailable
from toolgate.net.client import HttpClient, Response

_MOST = 65_536
# A token that ends while a request is on its way is no use.
_AHEAD = 30.0
_USUAL = 300.0
_TOKEN = re.compile(r"[!-~]{1,32768}\Z")
_CODE = re.compile(r"[a-z_]{1,64}\Z")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a token, whom, and what for."""

    url: str
    id: str
    secret: str
    scope: str = ""
    audience: str = ""
    in_body: bool = False

    def __repr__(self) -> str:
        return f"Client({self.id!r} at {self.url!r})"


class _Kept(NamedTuple):
    token: str
    until_ns: int


class Tokens:
    """Those that are there. Tools with the same client share one."""

    def __init__(self, sender: HttpClient, *, seconds: float) -> None:
        """`seconds`: how long fetching one may take, whoever waits for it."""
        self._sender = sender
        self._seconds = seconds
        self._kept: dict[Client, _Kept] = {}
        self._fetching: dict[Client, asyncio.Task[str]] = {}

    async def token(self, client: Client) -> str:
        """One that is still good when it arrives."""
        kept = self._kept.get(client)
        if kept is not None and clock.monotonic_ns() < kept.until_ns:
            return kept.token
        fetching = self._fetching.get(client)
        if fetching is None:
            fetching = asyncio.create_task(self._fetched(client))
            self._fetching[client] = fetching
            fetching.add_done_callback(lambda done: self._ended(client, done))
        # Who stops waiting does not take the token from the others.
        try:
            return await asyncio.shield(fetching)
        except ProviderUnavailable as error:
            # Each its own: what becomes of a call is noted on its error.
            raise ProviderUnavailable(error.message) from None

    def forget(self, client: Client, token: str) -> None:
        """One that was not taken; a newer one stays."""
        kept = self._kept.get(client)
        if kept is not None and kept.token == token:
            del self._kept[client]

    async def close(self) -> None:
        """Nobody waits any more."""
        for task in list(self._fetching.values()):
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)

    def _ended(self, client: Client, done: "asyncio.Task[str]") -> None:
        del self._fetching[client]
        if not done.cancelled():
            # Whoever waited has been told; where nobody did, nobody has to be.
            done.exception()

    async def _fetched(self, client: Client) -> str:
        form = {"grant_type": "client_credentials"}
        if client.scope:
            form["scope"] = client.scope
        if client.audience:
            form["audience"] = client.audience
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        if client.in_body:
            form |= {"client_id": client.id, "client_secret": client.secret}
        else:
            pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        try:
            response = await self._sender.send(
                "POST",
                client.url,
                headers=headers,
                body=urlencode(form).encode(),
                most=_MOST,
                seconds=self._seconds,
                repeatable=True,
            )
        except SourceUnavailable as error:
            raise _without_token(f"its token server cannot be reached. {error.message}") from None
        token, lasts = _read(response)
        until_ns = clock.monotonic_ns() + int(max(lasts - min(_AHEAD, lasts / 2), 0) * 1e9)
        self._kept[client] = _Kept(token, until_ns)
        return token


def _read(response: Response) -> tuple[str, float]:
    try:
        given: Any = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        given = None
    answer = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if response.status != 200:
        code = answer.get("error")
        why = f" ({code})" if isinstance(code, str) and _CODE.match(code) else ""
        raise _without_token(
            f"its token server answered {response.status}{why}. An operator has to look at the "
            "client's id, secret and scope"
        )
    token, kind = answer.get("access_token"), answer.get("token_type", "bearer")
    if (
        not isinstance(token, str)
        or not _TOKEN.match(token)
        or not isinstance(kind, str)
        or kind.lower() != "bearer"
    ):
        raise _without_token("its token server answered without a bearer token")
    lasts = answer.get("expires_in", _USUAL)
    is_time = isinstance(lasts, (int, float)) and not isinstance(lasts, bool) and lasts > 0
    return token, min(float(lasts), 86_400.0) if is_time else _USUAL


def _without_token(why: str) -> ProviderUnavailable:
    return ProviderUnavailable(f"There is no token for this tool: {why.rstrip('.')}. Nothing ran.")
