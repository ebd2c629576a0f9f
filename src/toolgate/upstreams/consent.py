"""Tokens that a person agrees to: the grant by a code, with a proof key.

Whoever gives consent is a port: a browser and an operator in front of it, or a test.
"""

import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson

from toolgate.net.client import HttpClient
from toolgate.upstreams import discovery, exchange
from toolgate.upstreams.discovery import Issuer, Wanted
from toolgate.upstreams.exchange import Registered
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.oauth import Token

OFFLINE = "offline_access"

# Takes the address where consent is given, and gives the one that it led back to.
Consent = Callable[[str], Awaitable[str]]


class Consented:
    """Asks whoever a server names, as who we are there."""

    def __init__(
        self,
        url: str,
        client: HttpClient,
        consent: Consent,
        *,
        redirect: str,
        document: str = "",
        registered: Registered | None = None,
    ) -> None:
        """`document`: the address that describes us; `registered`: who an operator says we are."""
        self._url = url
        self._client = client
        self._consent = consent
        self._redirect = redirect
        self._document = document
        self._given = registered
        # Who we are is one server's to know: another one that turns up is told anew.
        self._known: dict[str, Registered] = {}

    async def token(self, said: Mapping[str, str], held: tuple[str, ...]) -> Token:
        """One for what the server wants, beside what is held already."""
        want = await discovery.wanted(self._client, self._url, said)
        scopes = discovery.scopes_of(held, want.scopes)
        giver = await discovery.issuer(self._client, want.issuer)
        for endpoint in filter(None, (giver.authorize, giver.token, giver.register)):
            discovery.check_address(endpoint)
        if not (giver.authorize and giver.token):
            raise AwayError("whoever gives tokens for it does not say where.")
        if not giver.wants_proof:
            raise AwayError("whoever gives tokens for it takes a code from anyone who has it.")
        me = await self._introduced(giver)
        text = await self._asked(want, giver, me, scopes)
        return Token(text, scopes, secrets=(me.secret, me.basic))

    async def _asked(
        self, want: Wanted, giver: Issuer, me: Registered, scopes: tuple[str, ...]
    ) -> str:
        if OFFLINE in giver.scopes and OFFLINE not in scopes:
            scopes = (*scopes, OFFLINE)
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        state = secrets.token_urlsafe(24)
        asked = {
            "response_type": "code",
            "client_id": me.id,
            "redirect_uri": self._redirect,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": state,
            "resource": want.resource,
            **({"scope": " ".join(scopes)} if scopes else {}),
        }
        sign = "&" if "?" in giver.authorize else "?"
        back = await self._consent(f"{giver.authorize}{sign}{urlencode(asked)}")
        code = _code(back, state, giver)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": verifier,
            "resource": want.resource,
        }
        return await exchange.exchanged(self._client, giver, me, form)

    async def _introduced(self, giver: Issuer) -> Registered:
        """Who we are there: as an operator says, by our document, or as we are registered now."""
        if self._given is not None:
            return self._given
        if giver.knows_documents and self._document:
            return Registered(id=self._document, method="none")
        if giver.name not in self._known:
            self._known[giver.name] = await self._registered(giver)
        return self._known[giver.name]

    async def _registered(self, giver: Issuer) -> Registered:
        if not giver.register:
            raise AwayError("whoever gives tokens for it does not know us; register with it first.")
        asked = {
            "client_name": "toolgate",
            "redirect_uris": [self._redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": exchange.method_of(giver, has_secret=True),
            "application_type": "native",
        }
        body = orjson.dumps(asked)
        said = await exchange.posted(self._client, giver.register, body, "application/json", {})
        id_, secret = said.get("client_id"), said.get("client_secret")
        if type(id_) is not str:
            raise AwayError("whoever gives tokens for it did not register us.")
        method = said.get("token_endpoint_auth_method")
        return Registered(
            id=id_,
            secret=secret if type(secret) is str else "",
            method=method if type(method) is str else "",
        )


def _code(back: str, state: str, giver: Issuer) -> str:
    """The code, if the answer is to our question and from whom we asked."""
    said = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    if not secrets.compare_digest(said.get("state", "").encode(), state.encode()):
        raise AwayError("the answer to a request for consent is not ours.")
    if ("iss" in said or giver.says_iss) and said.get("iss") != giver.name:
        raise AwayError("the answer to a request for consent is from somebody else.")
    if "code" not in said:
        raise AwayError("consent was not given.")
    return said["code"]
