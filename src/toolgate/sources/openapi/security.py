"""How an operation authenticates, in the words of HTTP tools: each credential is a named secret."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from toolgate.sources.openapi import older
from toolgate.sources.openapi.naming import slug
from toolgate.sources.openapi.opened import Opened
from toolgate.sources.openapi.operations import Operation
from toolgate.sources.openapi.pointers import Pointers, Unresolved
from toolgate.sources.openapi.prose import printable
from toolgate.sources.openapi.report import Notes, Secret
from toolgate.sources.openapi.servers import is_clear

_MAX_TOGETHER = 4


class _Way(NamedTuple):
    """A scheme as `auth` of an HTTP tool, and what its secret is."""

    auth: dict[str, Any]
    secret: str
    about: str
    hosts: frozenset[str] = frozenset()


class Security:
    """The schemes of a document, and which secrets they take."""

    def __init__(
        self,
        opened: Opened,
        pointers: Pointers,
        notes: Notes,
        *,
        name: str,
        client_id: str = "",
        wanted: Sequence[str] = (),
    ) -> None:
        """`wanted`: the schemes to take where an operation offers several."""
        self._is_old = opened.version == "2.0"
        parts: Any = opened.value if self._is_old else opened.value.get("components")
        holder = cast("dict[str, Any]", parts) if isinstance(parts, dict) else {}
        found = holder.get("securityDefinitions" if self._is_old else "securitySchemes")
        self._schemes = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        self._usual = opened.value.get("security")
        self._pointers = pointers
        self._notes = notes
        self._name = name
        self._client_id = client_id
        self._wanted = frozenset(wanted)
        self._ways: dict[str, _Way | str] = {}
        self._hosts: dict[str, set[str]] = {}
        self._about: dict[str, str] = {}

    def of(self, operation: Operation, server: str) -> list[dict[str, Any]]:
        """The credentials of this operation, which are sent together."""
        asked = operation.fields.get("security", self._usual)
        choices = cast("list[Any]", asked) if isinstance(asked, list) else []
        offered: list[tuple[str, ...]] = []
        problem = ""
        for choice in choices:
            names = tuple(cast("dict[str, Any]", choice)) if isinstance(choice, dict) else ()
            ways = [self._way(name) for name in names[:_MAX_TOGETHER]]
            refused = next((way for way in ways if isinstance(way, str)), "")
            if not refused:
                offered.append(names[:_MAX_TOGETHER])
            problem = problem or refused
        if not offered:
            if problem:
                self._notes.add(f"no credentials are sent: {problem}", operation.shown)
            return []
        taken = next((one for one in offered if self._wanted & set(one)), offered[0])
        self._tell(offered, taken, operation)
        ways = (self._way(name) for name in taken)
        return [self._sent(way, server, operation) for way in ways if isinstance(way, _Way)]

    def bound(
        self, secret: str, place: str, name: str, server: str, operation: Operation
    ) -> dict[str, Any]:
        """A credential in the place of an argument, as an operator says."""
        auth = {"kind": "api_key", "in": place, "name": name, "secret": secret}
        about = f"what is sent as the {place} {printable(name, 60)}"
        return self._sent(_Way(auth, secret, about), server, operation)

    def unknown(self) -> str:
        """A scheme that was asked for and that there is none of, or nothing."""
        return next((one for one in sorted(self._wanted) if one not in self._schemes), "")

    def schemes(self) -> list[str]:
        """All of the document."""
        return list(self._schemes)

    def _tell(
        self, offered: Sequence[tuple[str, ...]], taken: tuple[str, ...], operation: Operation
    ) -> None:
        """Which of several was taken, and how to take another."""
        others = [one for one in dict.fromkeys(offered) if one != taken]
        if not others or (self._wanted and self._wanted & set(taken)):
            return
        listed = " or ".join(f"--auth {printable(one[0], 60)}" for one in others if one)
        instead = f"; another is taken with {listed}" if listed else ""
        told = f"it offers {' or '.join(map(_shown, (taken, *others)))}"
        self._notes.add(f"{told}; {_shown(taken)} is taken{instead}", operation.shown)

    def secrets(self) -> list[Secret]:
        """What an operator has to set, and for which hosts."""
        return [
            Secret(name=name, about=self._about[name], hosts=sorted(hosts))
            for name, hosts in sorted(self._hosts.items())
        ]

    def _sent(self, way: _Way, server: str, operation: Operation) -> dict[str, Any]:
        hosts = self._hosts.setdefault(way.secret, set())
        # In the clear it goes nowhere unless an operator writes the port beside the host.
        hosts.add(urlsplit(server).hostname or "" if is_clear(server) else _place(server))
        hosts |= way.hosts
        self._about[way.secret] = way.about
        if is_clear(server):
            safe = printable(f"https{server.removeprefix('http')}")
            self._notes.add(
                f"its secret would go to {printable(server)} in clear text, so it is not sent: "
                f"import it with --server {safe}; if there is no such place, write "
                f"{_place(server)!r} into the secret's hosts",
                operation.shown,
                grave=True,
            )
        return way.auth

    def _way(self, name: str) -> _Way | str:
        """How a scheme is written here, or why it cannot be."""
        if name not in self._ways:
            try:
                given = self._pointers.follow(self._schemes.get(name))
                self._ways[name] = self._read(name, older.scheme(given) if self._is_old else given)
            except Unresolved as problem:
                self._ways[name] = f"the scheme {printable(name, 60)!r} {problem}"
        return self._ways[name]

    def _read(self, name: str, given: dict[str, Any]) -> _Way | str:
        secret = slug(f"{self._name}_{name}", 80)
        kind, scheme = given.get("type"), str(given.get("scheme", "")).lower()
        if kind == "http" and scheme == "basic":
            auth = {"kind": "api_key", "in": "header", "name": "Authorization", "prefix": "Basic "}
            return _Way(auth | {"secret": secret}, secret, "USER:PASSWORD in base64")
        if kind == "http" and scheme == "bearer":
            return _bearer(secret, "a bearer token")
        if kind == "apiKey":
            return _key(secret, given)
        if kind == "oauth2":
            return self._oauth(secret, given)
        if kind == "openIdConnect":
            return _bearer(secret, "an access token of its OpenID provider")
        return f"the scheme {printable(name, 60)!r} is {printable(scheme or kind, 40)!r}"

    def _oauth(self, secret: str, given: dict[str, Any]) -> _Way:
        flows = given.get("flows")
        found = cast("dict[str, Any]", flows) if isinstance(flows, dict) else {}
        flow = found.get("clientCredentials")
        url = cast("dict[str, Any]", flow).get("tokenUrl") if isinstance(flow, dict) else None
        if not isinstance(url, str) or not url.startswith("https://"):
            return _bearer(secret, "an OAuth access token")
        if not self._client_id:
            return _bearer(secret, "an OAuth access token; with --client-id ID, the client secret")
        auth = {"kind": "oauth", "token_url": url, "client_id": self._client_id, "secret": secret}
        return _Way(auth, secret, "the OAuth client's secret", frozenset({_place(url)}))


def _shown(names: Sequence[str]) -> str:
    return " and ".join(printable(name, 60) for name in names) or "no credentials"


def _bearer(secret: str, about: str) -> _Way:
    return _Way({"kind": "bearer", "secret": secret}, secret, about)


def _key(secret: str, given: dict[str, Any]) -> _Way | str:
    place, name = given.get("in"), given.get("name")
    if place not in {"header", "query", "cookie"} or not isinstance(name, str) or not name:
        return "an API key has neither a name nor a place"
    auth = {"kind": "api_key", "in": place, "name": name, "secret": secret}
    return _Way(auth, secret, f"an API key, sent as the {place} {printable(name, 60)}")


def _place(url: str) -> str:
    """A host as `hosts` of a secret names it: without a port it means https."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.port in {None, 443}:
        return parts.hostname or ""
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
