"""A token from whoever gives them: who we are there, and how we show it."""

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote_plus, urlencode

import msgspec

from toolgate.net.client import HttpClient
from toolgate.net.errors import Lost, NotSent
from toolgate.upstreams import discovery
from toolgate.upstreams.discovery import Issuer
from toolgate.upstreams.failures import AwayError

_MOST = 256 * 1024
_SECONDS = 30.0
_FORM = "application/x-www-form-urlencoded"
_TOKEN = re.compile(r"[!-~]{1,32768}\Z")
# Whoever calls reads them: no other word of whoever gives tokens comes as far.
_CODES = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "invalid_target"),
        *("unauthorized_client", "unsupported_grant_type", "access_denied", "server_error"),
        *("temporarily_unavailable", "invalid_redirect_uri", "invalid_client_metadata"),
    }
)


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to one authorization server."""

    id: str
    secret: str = ""
    method: str = ""

    def __repr__(self) -> str:
        # Logs and errors have no secret.
        return f"Registered({self.id!r})"

    @property
    def basic(self) -> str:
        """Who we are, as a header says it."""
        pair = f"{quote_plus(self.id)}:{quote_plus(self.secret)}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


async def exchanged(
    client: HttpClient, giver: Issuer, me: Registered, form: Mapping[str, str]
) -> str:
    """The token that a form gets us."""
    head: dict[str, str] = {}
    sent = dict(form)
    method = me.method or method_of(giver, has_secret=bool(me.secret))
    if method == "client_secret_basic" and me.secret:
        head["Authorization"] = me.basic
    else:
        sent["client_id"] = me.id
        if method == "client_secret_post":
            sent["client_secret"] = me.secret
    said = await posted(client, giver.token, urlencode(sent).encode(), _FORM, head)
    token, kind = said.get("access_token"), said.get("token_type", "bearer")
    if type(token) is not str or not _TOKEN.match(token):
        raise AwayError("whoever gives tokens for it gave none.")
    if type(kind) is not str or kind.lower() != "bearer":
        raise AwayError("whoever gives tokens for it gave one that is no bearer token.")
    return token


async def posted(
    client: HttpClient, url: str, body: bytes, kind: str, head: Mapping[str, str]
) -> discovery.Json:
    """What whoever gives tokens answers."""
    try:
        answer = await client.send(
            "POST",
            url,
            headers={"Content-Type": kind, "Accept": "application/json", **head},
            body=body,
            most=_MOST,
            seconds=_SECONDS,
        )
    except (NotSent, Lost) as error:
        raise AwayError("whoever gives tokens for it cannot be reached.", error.message) from None
    document = discovery.parsed(answer.body)
    if answer.status not in {200, 201} or document is None:
        code = (document or {}).get("error")
        why = f", {code}" if type(code) is str and code in _CODES else ""
        raise AwayError(f"whoever gives tokens for it refused (HTTP {answer.status}{why}).")
    return document


def method_of(giver: Issuer, *, has_secret: bool) -> str:
    """How we show who we are; what needs no secret where we have none."""
    if not has_secret:
        return "none"
    for method in ("client_secret_basic", "client_secret_post", "none"):
        if method in giver.methods:
            return method
    return "client_secret_basic"
