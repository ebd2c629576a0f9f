"""Who gives tokens for a server: what it says when it refuses, and what it publishes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson

from toolgate.net.address import shown
from toolgate.net.client import HttpClient
from toolgate.net.errors import Lost, NotAllowed, NotSent
from toolgate.net.location import Location, read
from toolgate.upstreams.failures import AwayError

_MOST = 256 * 1024
_SECONDS = 10.0
# A name is begun at its beginning alone, and nothing is tried twice: a server's words have no end.
_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]++)\s*+=\s*+(?:"([^"]*)"|([^\s,"]++))')
# As RFC 6749 writes one.
_SCOPE = re.compile(r"[!#-\[\]-~]{1,256}\Z")
_MOST_SCOPES = 100
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
    # Whether it holds a code against the key that it was asked for with.
    wants_proof: bool = True


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
    here = read(url)
    origin = _origin(here)
    known = "/.well-known/oauth-protected-resource"
    places = [f"{origin}{known}{_path(here)}", f"{origin}{known}"]
    named = said.get("resource_metadata", "")
    if _is_of(named, here):
        # Of itself alone: what is asked at another place, with the path of its choice, may do
        # something there.
        places.insert(0, named)
    document = await _published(client, places, "it")
    if document is None:
        # Before servers published this, they gave the tokens themselves.
        return Wanted(resource=url, issuer=origin, scopes=_words(said.get("scope")))
    resource = document.get("resource")
    if type(resource) is not str or not _covers(resource, here):
        raise AwayError("it publishes a name that is not its own; no token is asked for.")
    issuers = _texts(document.get("authorization_servers"))
    if not issuers:
        raise AwayError("it does not say who gives tokens for it.")
    if here.scheme == "https":
        # Else who stands between could say where tokens are given.
        check_address(issuers[0])
    scopes = _words(said.get("scope")) or _texts(document.get("scopes_supported"))
    return Wanted(resource=resource, issuer=issuers[0], scopes=scopes)


async def issuer(client: HttpClient, name: str) -> Issuer:
    """The authorization server of that name. A document that names another one is not its."""
    there = _located(name)
    origin, path = _origin(there), _path(there)
    places = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    document = await _published(client, places, "whoever gives tokens for it")
    if document is None:
        return Issuer(
            name=name,
            authorize=f"{origin}/authorize",
            token=f"{origin}/token",
            register=f"{origin}/register",
        )
    if document.get("issuer") != name:
        raise AwayError("whoever gives tokens for it publishes another name; none is asked for.")
    return Issuer(
        name=name,
        authorize=_text(document.get("authorization_endpoint")),
        token=_text(document.get("token_endpoint")),
        register=_text(document.get("registration_endpoint")),
        methods=_texts(document.get("token_endpoint_auth_methods_supported")),
        scopes=_texts(document.get("scopes_supported")),
        knows_documents=document.get("client_id_metadata_document_supported") is True,
        says_iss=document.get("authorization_response_iss_parameter_supported") is True,
        wants_proof="S256" in _texts(document.get("code_challenge_methods_supported")),
    )


def scopes_of(*wanted: Sequence[str]) -> tuple[str, ...]:
    """All of these once, without what is none. A server can want more with every call."""
    found = tuple(dict.fromkeys(one for some in wanted for one in some if _SCOPE.match(one)))
    if len(found) > _MOST_SCOPES:
        raise AwayError(f"it wants more than {_MOST_SCOPES} scopes; its settings can name fewer.")
    return found


def check_address(url: str) -> None:
    """An address from elsewhere: one of the web that nobody on the way can read, or none."""
    there = _located(url)
    if there.scheme != "https" and not is_here(there):
        raise AwayError("whoever gives tokens for it has an address in clear text.")


def is_here(there: Location) -> bool:
    """Whether what is sent there stays on this machine."""
    return there.host == "localhost" or (there.address is not None and there.address.is_loopback)


def _located(url: str) -> Location:
    try:
        return read(url)
    except NotAllowed:
        raise AwayError(
            "whoever gives tokens for it has an address that is none of the web."
        ) from None


def _origin(there: Location) -> str:
    return f"{there.scheme}://{there.authority}"


def _path(there: Location) -> str:
    return there.path.partition("?")[0].rstrip("/")


def _is_of(url: str, here: Location) -> bool:
    """Whether an address is of this host."""
    try:
        there = read(url)
    except NotAllowed:
        return False
    return (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)


def _covers(resource: str, here: Location) -> bool:
    """Whether a name is that of the server, or of what holds it."""
    if "#" in resource or not _is_of(resource, here):
        return False
    path = _path(read(resource))
    return _path(here) == path or _path(here).startswith(f"{path}/")


async def _published(client: HttpClient, places: Sequence[str], who: str) -> Json | None:
    """The first document that is there. That there is none everyone has to say: where one cannot
    be had now, another would be taken for who gives tokens.
    """
    missed = ""
    for place in dict.fromkeys(places):
        try:
            answer = await client.get(
                place, headers={"Accept": "application/json"}, most=_MOST, seconds=_SECONDS
            )
        except (NotSent, Lost) as error:
            missed = error.message
            continue
        document = parsed(answer.body) if answer.status == 200 else None
        if document is not None:
            return document
        if answer.status >= 500 or answer.status == 429:
            missed = f"HTTP {answer.status} from {shown(place)}."
    if missed:
        raise AwayError(f"what {who} publishes about tokens cannot be had now.", missed)
    return None


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
