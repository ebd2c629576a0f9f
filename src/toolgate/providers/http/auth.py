"""Who the operator is to a service: credentials from named secrets, put on at the last moment."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from toolgate.net.credential import Credential
from toolgate.net.hidden import forms
from toolgate.net.location import Location
from toolgate.providers.http import read
from toolgate.providers.http.address import location_of
from toolgate.providers.http.oauth import Client, Tokens
from toolgate.providers.http.secret import Secrets

KINDS = ("bearer", "basic", "api_key", "oauth")
_KEYS: Mapping[str, read.Keys] = {
    "bearer": {"secret": read.text},
    "basic": {"user": read.text, "secret": read.text},
    "api_key": {
        "in": read.word("header", "query", "cookie"),
        "name": read.text,
        "secret": read.text,
        "prefix": read.text,
    },
    "oauth": {
        "token_url": read.text,
        "client_id": read.text,
        "secret": read.text,
        "scope": read.text,
        "audience": read.text,
        "client_auth": read.word("basic", "body"),
    },
}
_OPTIONAL = frozenset({"in", "name", "prefix", "scope", "audience", "client_auth"})


class Proof(NamedTuple):
    """What goes with a request, and how it would look in an answer, where it is taken out."""

    credentials: tuple[Credential, ...] = ()
    hidden: tuple[bytes, ...] = ()


class Auth(Protocol):
    """Gives credentials. `names`: the headers, parameters and cookies that are theirs."""

    names: frozenset[tuple[str, str]]

    async def proof(self) -> Proof:
        """What to send; it may have to be fetched."""
        ...

    def outdated(self, used: Proof) -> bool:
        """The service did not take it. Whether another one can be had."""
        ...


class Fixed:
    """What does not change while the house is open."""

    def __init__(self, *credentials: Credential, hidden: tuple[bytes, ...] = ()) -> None:
        self._proof = Proof(credentials, hidden)
        self.names = frozenset((one.where, one.key.lower()) for one in credentials)

    async def proof(self) -> Proof:
        """The same for all."""
        return self._proof

    def outdated(self, used: Proof) -> bool:  # noqa: ARG002  there is no other
        """No other can be had."""
        return False


NOBODY = Fixed()


class OAuth:
    """A token for the client's own credentials, fetched when there is none."""

    names = frozenset({("header", "authorization")})

    def __init__(self, tokens: Tokens, client: Client, secrets: Secrets, secret: str) -> None:
        self._tokens = tokens
        self._client = client
        self._secrets = secrets
        self._secret = secret
        self._last = ("", Proof())

    async def proof(self) -> Proof:
        """With the token that is kept, or a new one."""
        token = await self._tokens.token(self._client)
        if token != self._last[0]:
            sent = self._secrets.credential(self._secret, f"Bearer {token}")
            self._last = token, Proof((sent,), forms((token, self._client.secret)))
        return self._last[1]

    def outdated(self, used: Proof) -> bool:
        """Forget the token that was used, unless a newer one is there already."""
        token, last = self._last
        if any(one in used.credentials for one in last.credentials):
            self._tokens.forget(self._client, token)
        return True


class Several:
    """More than one at a time."""

    def __init__(self, parts: tuple[Auth, ...]) -> None:
        self._parts = parts
        self.names = frozenset(name for one in parts for name in one.names)

    async def proof(self) -> Proof:
        """All of them together."""
        given = [await one.proof() for one in self._parts]
        return Proof(
            tuple(credential for one in given for credential in one.credentials),
            tuple(form for one in given for form in one.hidden),
        )

    def outdated(self, used: Proof) -> bool:
        """Whether any can be had anew."""
        # Each is told, also behind one that can.
        return sum(one.outdated(used) for one in self._parts) > 0


def auth(value: Any, secrets: Secrets, place: Location, tokens: Tokens) -> Auth:
    """Read `auth`: one, or a list of several that are sent together."""
    if not isinstance(value, list):
        return _one(value, secrets, place, tokens)
    found = tuple(
        read.at(f"[{index}]", lambda one=one: _one(one, secrets, place, tokens))
        for index, one in enumerate(read.listed(value, 4))
    )
    names = [name for one in found for name in one.names]
    if len(set(names)) != len(names):
        raise ValueError("sends two credentials in one place; keep one of them")
    return Several(found)


def _one(value: Any, secrets: Secrets, place: Location, tokens: Tokens) -> Auth:
    kind = read.fields(value).get("kind")
    if kind not in KINDS:
        raise ValueError(f".kind is no kind of it; write one of {', '.join(KINDS)}")
    given = read.only(value, {"kind": read.text, **_KEYS[kind]})
    for key in _KEYS[kind]:
        if not given.get(key) and key not in _OPTIONAL:
            raise ValueError(f".{key} is missing; {kind} needs it")
    if kind == "oauth":
        return _oauth(given, secrets, place, tokens)
    name = given["secret"]
    secret = read.at(".secret", lambda: secrets.value(name, place))
    if kind == "bearer":
        return Fixed(secrets.credential(name, f"Bearer {secret}"), hidden=forms((secret,)))
    if kind == "basic":
        pair = f"{given['user']}:{secret}"
        if ":" in given["user"] or not pair.isascii():
            raise ValueError(".user has a colon or a letter outside of ASCII; write it without")
        sent = f"Basic {b64encode(pair.encode()).decode()}"
        return Fixed(secrets.credential(name, sent), hidden=forms((secret, pair)))
    where, key = given.get("in", "header"), given.get("name") or "X-API-Key"
    if where != "query":
        check = read.token if where == "cookie" else read.credential_header
        read.at(".name", lambda: check(key))
    sent = secrets.credential(name, given.get("prefix", "") + secret, where=where, key=key)
    return Fixed(sent, hidden=forms((secret,)))


def _oauth(given: Mapping[str, Any], secrets: Secrets, place: Location, tokens: Tokens) -> Auth:
    token_url = read.at(".token_url", lambda: location_of(given["token_url"]))
    # The token stands for the secret: it goes no further than that may.
    secret = read.at(".secret", lambda: secrets.value(given["secret"], token_url, place))
    client = Client(
        url=given["token_url"],
        id=given["client_id"],
        secret=secret,
        scope=given.get("scope", ""),
        audience=given.get("audience", ""),
        in_body=given.get("client_auth") == "body",
    )
    return OAuth(tokens, client, secrets, given["secret"])
