"""Tokens for who we are ourselves: the grant by a client's id and secret, without a person.

The secret is bound to hosts. Whoever gives tokens may be named by the server: one that names
somebody else gets no secret of ours sent there.
"""

from collections.abc import Callable, Mapping, Sequence

from toolgate.net.client import HttpClient
from toolgate.settings.outward import McpOAuth
from toolgate.upstreams import discovery
from toolgate.upstreams.discovery import Issuer, Wanted
from toolgate.upstreams.exchange import Registered, exchanged
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.oauth import Token

# By its name, for all of these addresses; `ValueError` says why it may not go there.
Secret = Callable[[str, Sequence[str]], str]
_METHODS = {"": "", "basic": "client_secret_basic", "body": "client_secret_post"}


def no_secret(name: str, urls: Sequence[str]) -> str:  # noqa: ARG001  there are none
    """Where nobody hands them out."""
    raise ValueError(f"names the secret {name[:60]!r}, and there are none here")


class Credentials:
    """As the settings of one server say who we are."""

    def __init__(self, url: str, client: HttpClient, settings: McpOAuth, secret: Secret) -> None:
        self._url = url
        self._client = client
        self._settings = settings
        self._secret = secret

    async def token(self, said: Mapping[str, str], held: tuple[str, ...]) -> Token:
        """One for the scopes of the settings; where they name none, for those the server wants."""
        given = self._settings
        if held and given.scope:
            raise AwayError(
                "it wants more than its settings let us ask for.",
                f"it wants the scope {said.get('scope', '')[:200]!r} beside oauth.scope.",
            )
        want, giver = await self._whom(said)
        if not giver.token:
            raise AwayError("whoever gives tokens for it does not say where.")
        scopes = tuple(dict.fromkeys(given.scope.split() or (*held, *want.scopes)))
        try:
            # The token stands for the secret: it goes no further than that may, and in clear
            # text only where that may.
            secret = self._secret(given.secret, (giver.token, self._url))
        except ValueError as error:
            raise AwayError("it is not set up.", f"oauth {error}.") from None
        form = {"grant_type": "client_credentials", "resource": want.resource}
        if scopes:
            form["scope"] = " ".join(scopes)
        if given.audience:
            form["audience"] = given.audience
        me = Registered(id=given.client_id, secret=secret, method=_METHODS[given.client_auth])
        return Token(await exchanged(self._client, giver, me, form), scopes, secrets=(secret,))

    async def _whom(self, said: Mapping[str, str]) -> tuple[Wanted, Issuer]:
        """Whoever the settings name gives it, or else whoever the server does."""
        if named := self._settings.token_url:
            scopes = tuple(said.get("scope", "").split())
            want = Wanted(resource=self._url, issuer=named, scopes=scopes)
            return want, Issuer(name=named, authorize="", token=named)
        want = await discovery.wanted(self._client, self._url, said)
        return want, await discovery.issuer(self._client, want.issuer)
