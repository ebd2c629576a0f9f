"""Tokens for who we are ourselves: the grant by a client's id and secret, without a person.

The secret is bound to hosts. Whoever gives tokens may be named by the server: one that names
somebody else gets no secret of ours sent there.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from toolgate.net.client import HttpClient
from toolgate.net.location import read
from toolgate.settings.outward import McpOAuth
from toolgate.upstreams import discovery
from toolgate.upstreams.discovery import Issuer, Wanted
from toolgate.upstreams.exchange import Registered, exchanged
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.oauth import Token

# By its name, for all of these addresses; `ValueError` says why it may not go there.
Secret = Callable[[str, Sequence[str]], str]
# In all: up to six documents are looked for before a token is asked for.
_SECONDS = 30.0
_METHODS = {"": "", "basic": "client_secret_basic", "body": "client_secret_post"}


def no_secret(name: str, urls: Sequence[str]) -> str:  # noqa: ARG001  there are none
    """Where nobody hands them out."""
    raise ValueError(f"names the secret {name[:60]!r}, and there are none here")


class Credentials:
    """As the settings of one server say who we are."""

    def __init__(
        self,
        url: str,
        client: HttpClient,
        settings: McpOAuth,
        secret: Secret,
        *,
        is_named: bool = True,
    ) -> None:
        """`is_named`: an operator has written the server's address beside it."""
        self._url = url
        self._client = client
        self._settings = settings
        self._secret = secret
        self._is_named = is_named

    async def token(self, said: Mapping[str, str], held: tuple[str, ...]) -> Token:
        """One for the scopes of the settings; where they name none, for those the server wants."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._given(said, held)
        except TimeoutError:
            raise AwayError("whoever gives tokens for it is too slow.") from None

    async def _given(self, said: Mapping[str, str], held: tuple[str, ...]) -> Token:
        given = self._settings
        own = given.scope.split()
        if held and own:
            raise AwayError(
                "it wants more than its settings let us ask for.",
                f"it wants the scope {said.get('scope', '')[:200]!r} beside oauth.scope.",
            )
        want, giver = await self._whom(said)
        if not giver.token:
            raise AwayError("whoever gives tokens for it does not say where.")
        scopes = tuple(own) or discovery.scopes_of(held, want.scopes)
        try:
            secret = self._secret(given.secret, self._reached(giver))
        except ValueError as error:
            raise AwayError("it is not set up.", f"oauth {error}.") from None
        form = {"grant_type": "client_credentials", "resource": want.resource}
        if scopes:
            form["scope"] = " ".join(scopes)
        if given.audience:
            form["audience"] = given.audience
        me = Registered(id=given.client_id, secret=secret, method=_METHODS[given.client_auth])
        text = await exchanged(self._client, giver, me, form)
        return Token(text, scopes, secrets=(secret, me.basic))

    def _reached(self, giver: Issuer) -> tuple[str, ...]:
        """Where the secret has to be let. The token stands for it: in clear text, or to a server
        whose address is no operator's, it goes only where the secret may.
        """
        here = read(self._url)
        is_open = here.scheme == "http" and not discovery.is_here(here)
        return (giver.token, self._url) if is_open or not self._is_named else (giver.token,)

    async def _whom(self, said: Mapping[str, str]) -> tuple[Wanted, Issuer]:
        """Whoever the settings name gives it, or else whoever the server does."""
        if named := self._settings.token_url:
            scopes = tuple(said.get("scope", "").split())
            want = Wanted(resource=self._url, issuer=named, scopes=scopes)
            return want, Issuer(name=named, authorize="", token=named)
        want = await discovery.wanted(self._client, self._url, said)
        return want, await discovery.issuer(self._client, want.issuer)
