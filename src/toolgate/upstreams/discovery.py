"""Who gives tokens for a server: what it says when it refuses, and what it publishes."""

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import orjson

from toolgate.net.client import HttpClient
from toolgate.net.errors import Lost, NotSent
from toolgate.upstreams.failures import AwayError

_MOST = 256 * 1024
_SECONDS = 10.0
# A name is begun at its beginning alone, and nothing is tried twice: a server's words have no end.
_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]++)\s*+=\s*+(?:"([^"]*)"|([^\s,"]++))')
Json = dict[str, Any]


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """An authorization server, by its own document."""

    name: str
    authorize: str
    token: str
    register: str = ""
    methods: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    knows_documents: bool = False
    says_iss: bool = False


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a token has to be for: the server's own name for itself, and the scopes."""

    resource: str
    issuer: str
    scopes: tuple[str, ...] = ()


def challenge(header: str) -> dict[str, str]:
    """The parameters of `WWW-Authenticate: Bearer`."""
    if not header.lower().startswith("bearer"):
        return {}
    found = _PARAMETER.findall(header[6:])
    return {name.lower(): quoted or plain for name, quoted, plain in found}


async def wanted(client: HttpClient, url: str, said: Mapping[str, str]) -> Wanted:
    """What the server publishes of itself. It must not speak for another one."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    known = "/.well-known/oauth-protected-resource"
    places = [f"{origin}{known}{parts.path.rstrip('/')}", f"{origin}{known}"]
    if named := said.get("resource_metadata"):
        places.insert(0, named)
    document: Json | None = None
    for place in dict.fromkeys(places):
        document = await _fetched(client, place)
        if document is not None:
            break
    if document is None:
        # Before servers published this, they gave the tokens themselves.
        return Wanted(resource=url, issuer=origin, scopes=_words(said.get("scope")))
    resource = document.get("resource")
    if type(resource) is not str or not _covers(resource, url):
        raise AwayError("it publishes a name that is not its own; no token is asked for.")
    issuers = _texts(document.get("authorization_servers"))
    if not issuers:
        raise AwayError("it does not say who gives tokens for it.")
    scopes = _words(said.get("scope")) or _texts(document.get("scopes_supported"))
    return Wanted(resource=resource, issuer=issuers[0], scopes=scopes)


async def issuer(client: HttpClient, name: str) -> Issuer:
    """The authorization server of that name. A document that names another one is not its."""
    parts = urlsplit(name)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    for place in dict.fromkeys(places):
        document = await _fetched(client, place)
        if document is None:
            continue
        if document.get("issuer") != name:
            raise AwayError(
                "whoever gives tokens for it publishes another name; none is asked for."
            )
        return Issuer(
            name=name,
            authorize=_text(document.get("authorization_endpoint")),
            token=_text(document.get("token_endpoint")),
            register=_text(document.get("registration_endpoint")),
            methods=_texts(document.get("token_endpoint_auth_methods_supported")),
            scopes=_texts(document.get("scopes_supported")),
            knows_documents=document.get("client_id_metadata_document_supported") is True,
            says_iss=document.get("authorization_response_iss_parameter_supported") is True,
        )
    return Issuer(
        name=name,
        authorize=f"{origin}/authorize",
        token=f"{origin}/token",
        register=f"{origin}/register",
    )


def _covers(resource: str, url: str) -> bool:
    """Whether a name is that of the server, or of what holds it."""
    mine, theirs = urlsplit(url), urlsplit(resource)
    if (mine.scheme, mine.netloc) != (theirs.scheme, theirs.netloc):
        return False
    path = theirs.path.rstrip("/")
    return mine.path.rstrip("/") == path or mine.path.startswith(f"{path}/")


async def _fetched(client: HttpClient, url: str) -> Json | None:
    try:
        answer = await client.get(
            url, headers={"Accept": "application/json"}, most=_MOST, seconds=_SECONDS
        )
    except (NotSent, Lost):
        return None
    return parsed(answer.body) if answer.status == 200 else None


def parsed(raw: bytes) -> Json | None:
    """A JSON object, or nothing."""
    try:
        document: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return cast("Json", document) if type(document) is dict else None


def _text(given: Any) -> str:
    return given if type(given) is str else ""


def _texts(given: Any) -> tuple[str, ...]:
    if type(given) is not list:
        return ()
    return tuple(one for one in cast("list[Any]", given) if type(one) is str)


def _words(given: str | None) -> tuple[str, ...]:
    return tuple(given.split()) if given else ()
