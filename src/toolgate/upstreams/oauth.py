"""Tokens for a server that wants them: asked of whoever it names, with a person's consent.

A token is for one server, and goes to it alone. Whoever gives consent is a port: a browser and an
operator in front of it, or a test.
"""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import msgspec
import orjson

from toolgate.net.client import HttpClient, Streaming
from toolgate.net.errors import Lost, NotSent
from toolgate.upstreams import discovery
from toolgate.upstreams.discovery import Issuer, Wanted
from toolgate.upstreams.failures import AwayError

_MOST = 256 * 1024
_SECONDS = 30.0
OFFLINE = "offline_access"

# Takes the address where consent is given, and gives the one that it led back to.
Consent = Callable[[str], Awaitable[str]]


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to one authorization server."""

    id: str
    secret: str = ""
    method: str = ""


class OAuth:
    """Answers the challenges of one server."""

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
        self._scopes: tuple[str, ...] = ()
        self._token = ""
        self._asking = asyncio.Lock()

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    async def met(self, answer: Streaming) -> bool:
        """A new token, where one can help."""
        said = discovery.challenge(answer.headers.get("www-authenticate", ""))
        if answer.status == 403 and said.get("error") != "insufficient_scope":
            return False
        before = self._token
        async with self._asking:
            if self._token != before:
                return True
            want = await discovery.wanted(self._client, self._url, said)
            if answer.status == 403:
                both = dict.fromkeys((*self._scopes, *want.scopes))
                want = msgspec.structs.replace(want, scopes=tuple(both))
            self._token = await self._asked(want)
            self._scopes = want.scopes
            return True

    async def _asked(self, want: Wanted) -> str:
        giver = await discovery.issuer(self._client, want.issuer)
        me = await self._introduced(giver)
        scopes = want.scopes
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
        _check_endpoint(giver.authorize)
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
        return await self._exchanged(giver, me, form)

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
            "token_endpoint_auth_method": _method(giver, has_secret=True),
            "application_type": "native",
        }
        said = await self._posted(giver.register, orjson.dumps(asked), "application/json", {})
        id_, secret = said.get("client_id"), said.get("client_secret")
        if type(id_) is not str:
            raise AwayError("whoever gives tokens for it did not register us.")
        method = said.get("token_endpoint_auth_method")
        return Registered(
            id=id_,
            secret=secret if type(secret) is str else "",
            method=method if type(method) is str else "",
        )

    async def _exchanged(self, giver: Issuer, me: Registered, form: dict[str, str]) -> str:
        head: dict[str, str] = {}
        method = me.method or _method(giver, has_secret=bool(me.secret))
        if method == "client_secret_basic" and me.secret:
            pair = f"{quote_plus(me.id)}:{quote_plus(me.secret)}".encode()
            head["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            form = form | {"client_id": me.id}
            if method == "client_secret_post":
                form |= {"client_secret": me.secret}
        said = await self._posted(
            giver.token, urlencode(form).encode(), "application/x-www-form-urlencoded", head
        )
        token = said.get("access_token")
        if type(token) is not str or not token.isprintable() or not token.isascii():
            raise AwayError("whoever gives tokens for it gave none.")
        return token

    async def _posted(
        self, url: str, body: bytes, kind: str, head: dict[str, str]
    ) -> discovery.Json:
        _check_endpoint(url)
        try:
            answer = await self._client.send(
                "POST",
                url,
                headers={"Content-Type": kind, "Accept": "application/json", **head},
                body=body,
                most=_MOST,
                seconds=_SECONDS,
            )
        except (NotSent, Lost) as error:
            raise AwayError(
                "whoever gives tokens for it cannot be reached.", error.message
            ) from None
        document = discovery.parsed(answer.body)
        if answer.status not in {200, 201} or document is None:
            raise AwayError(f"whoever gives tokens for it refused (HTTP {answer.status}).")
        return document


def _method(giver: Issuer, *, has_secret: bool) -> str:
    """How we show who we are; what needs no secret where we have none."""
    if not has_secret:
        return "none"
    for method in ("client_secret_basic", "client_secret_post", "none"):
        if method in giver.methods:
            return method
    return "client_secret_basic"


def _check_endpoint(url: str) -> None:
    """An address from elsewhere: a web address, or none that is opened."""
    if urlsplit(url).scheme not in {"https", "http"}:
        raise AwayError("whoever gives tokens for it names an address that is none of the web.")


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
