"""The config of an HTTP tool: every field of it, read and checked before anything is sent."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from toolgate.providers.http import read
from toolgate.providers.http.address import Address, address, location_of
from toolgate.providers.http.auth import NOBODY, Auth, auth
from toolgate.providers.http.body import Body, body, rest
from toolgate.providers.http.entry import (
    Entry,
    cookie_pairs,
    entries,
    header_line,
    in_address,
    parameter,
    query_pairs,
)
from toolgate.providers.http.oauth import Tokens
from toolgate.providers.http.plan import Plan
from toolgate.providers.http.reading import Reading, reading
from toolgate.providers.http.secret import Secrets
from toolgate.spec.fit import argument_names
from toolgate.spec.tool import ToolSpec

KEYS = (
    "url", "path", "method", "query", "headers", "cookies", "parameters", "body", "auth",
    "response", "timeout", "redirects", "idempotency_header",
)  # fmt: skip
METHODS = ("GET", "HEAD", "OPTIONS", "DELETE", "POST", "PUT", "PATCH")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
# Another request may have been done before it leads on.
_FOLLOWED = frozenset({"GET", "HEAD"})
_MOST_PARAMETERS = 200
_PLAIN = {
    "Accept": "application/json, */*;q=0.5",
    "User-Agent": "toolgate",
}
T = TypeVar("T")


class Unusable(Exception):
    """Everything that is wrong with a config."""


def plan(spec: ToolSpec, secrets: Secrets, tokens: Tokens, *, most: int) -> Plan:
    """The plan of a tool, or `Unusable`. `most`: how many bytes an answer may have."""
    return _Reader(spec, most).plan(secrets, tokens)


class _Reader:
    """Reads field by field and keeps what is wrong, so that all of it is told at once."""

    def __init__(self, spec: ToolSpec, most: int) -> None:
        self._spec = spec
        self._most = most
        self._config: dict[str, Any] = spec.config.value()
        self._known = _arguments(spec)
        self._problems: list[str] = []

    def plan(self, secrets: Secrets, tokens: Tokens) -> Plan:
        for key in self._config:
            if key not in KEYS:
                self._problems.append(
                    f"config.{key[:60]} is no key of an HTTP tool; it takes {', '.join(KEYS)}"
                )
        method = self._read("method", _method, "POST")
        placed = self._read("parameters", self._parameters, [])
        where, query = self._address(placed)
        query += self._entries("query", placed)
        headers, cookies = self._entries("header", placed), self._entries("cookie", placed)
        sent = self._read("body", lambda value: body(value, self._known), None)
        used = {one.name for entry in (*query, *headers, *cookies) for one in entry.arguments}
        used |= {one.name for one in where.arguments} if where else set()
        used |= sent.arguments or frozenset() if sent else frozenset()
        sent = sent or self._usual_body(method, used)
        proof: Auth = NOBODY
        if where is not None:
            at = where.location
            proof = self._read("auth", lambda value: auth(value, secrets, at, tokens), NOBODY)
        self._check_places(query, headers, cookies, proof)
        self._check_rest(method, sent, used)
        self._check_type(headers)
        answers = self._read(
            "response", lambda value: reading(value, self._most), Reading(most=self._most)
        )
        key = self._key_header(headers, proof)
        timeout = self._read("timeout", read.number(0.001, 86_400), None)
        redirects = self._read("redirects", read.count(0, 10), 0)
        if redirects and method not in _FOLLOWED:
            self._problems.append(f"config.redirects are not followed for {method}; leave it out")
        moving = {
            "query": tuple(one for one in query if one.arguments),
            "header": tuple(one for one in headers if one.arguments),
            "cookie": tuple(one for one in cookies if one.arguments),
        }
        fixed = self._fixed(query, headers, cookies)
        if self._problems or where is None:
            raise Unusable("; ".join(self._problems[:8]))
        keyed = self._spec.downstream_key
        return Plan(
            method=method,
            address=where,
            query=moving["query"],
            fixed_query=fixed[0],
            headers=moving["header"],
            fixed_headers=fixed[1],
            # One line holds them all, so it is made anew where one of them changes.
            cookies=tuple(cookies) if moving["cookie"] else (),
            body=sent,
            rest_in_query=method not in _WITH_BODY,
            used=frozenset(used),
            reserved=frozenset(
                name.lower()
                for name in (
                    *(entry.name for entry in (*query, *cookies)),
                    *(name for place, name in proof.names if place != "header"),
                )
            ),
            auth=proof,
            reading=answers,
            timeout=timeout,
            redirects=redirects,
            is_typed=any(one.name.lower() == "content-type" for one in headers),
            key_header=key,
            key_argument=keyed.argument if keyed is not None else "",
        )

    def _read(self, key: str, reader: Callable[[Any], T], default: Any) -> T:
        if key not in self._config or self._config[key] is None:
            return default
        try:
            return read.at(f"config.{key}", lambda: reader(self._config[key]))
        except ValueError as error:
            self._problems.append(str(error))
            return default

    def _parameters(self, value: Any) -> list[tuple[str, Entry]]:
        return [
            read.at(f"[{index}]", lambda one=one: parameter(one, self._known))
            for index, one in enumerate(read.listed(value, _MOST_PARAMETERS))
        ]

    def _address(self, placed: list[tuple[str, Entry]]) -> tuple[Address | None, list[Entry]]:
        if not self._config.get("url"):
            self._problems.append("config.url is missing; write url: https://HOST/PATH")
            return None, []
        in_path: dict[str, tuple[Any, Any]] = {
            entry.name: (entry.source, entry.style) for place, entry in placed if place == "path"
        }

        def whole(value: Any) -> tuple[Address, list[Entry]]:
            url = read.text(value)
            path, _, query = url.partition("?")
            more = self._read("path", read.text, "")
            if more:
                path = path.rstrip("/") + "/" + more.removeprefix("/")
            if "#" in url or "#" in more or "?" in more:
                raise ValueError("has a # or a second ?; write what is asked for as query: {…}")
            location_of(path)
            read_so = address(path, self._known, in_path)
            places = {place.name for one in read_so.segments if not isinstance(one, str)
                      for place in one if not isinstance(place, str)}  # fmt: skip
            for name in in_path:
                if name not in places:
                    raise ValueError(f"has no {{{name[:60]}}}, which parameters place there")
            return read_so, in_address(query, self._known)

        return self._read("url", whole, (None, []))

    def _entries(self, place: str, placed: list[tuple[str, Entry]]) -> list[Entry]:
        key = {"query": "query", "header": "headers", "cookie": "cookies"}[place]
        found: list[Entry] = self._read(key, lambda value: entries(value, place, self._known), [])
        return [*found, *(entry for where, entry in placed if where == place)]

    def _usual_body(self, method: str, used: Collection[str]) -> Body | None:
        if method not in _WITH_BODY:
            return None
        # Whatever it is called, where the schema does not say the names.
        names = {"*"} if self._known is None else self._known
        return rest(names - set(used))

    def _check_places(
        self, query: list[Entry], headers: list[Entry], cookies: list[Entry], proof: Auth
    ) -> None:
        for place, given in (("query", query), ("header", headers), ("cookie", cookies)):
            seen = {name.lower() for where, name in proof.names if where == place}
            for entry in given:
                if entry.name.lower() in seen:
                    self._problems.append(
                        f"config sets the {place} {entry.name[:60]!r} twice; keep one of them"
                    )
                seen.add(entry.name.lower())

    def _check_rest(self, method: str, sent: Body | None, used: Collection[str]) -> None:
        if sent is None or sent.arguments is None or method not in _WITH_BODY or not self._known:
            return
        keyed = self._spec.downstream_key
        known = set(self._known) - ({keyed.argument} if keyed is not None else set())
        for name in sorted(known - set(used))[:5]:
            self._problems.append(
                f"config sends the argument {name[:60]!r} nowhere; write {{{name[:60]}}} in its "
                "path, query, headers or body, or take it out of input_schema"
            )

    def _check_type(self, headers: list[Entry]) -> None:
        given = self._config.get("body")
        is_parts = isinstance(given, dict) and cast("dict[str, Any]", given).get("kind") == (
            "multipart"
        )
        if is_parts and any(one.name.lower() == "content-type" for one in headers):
            self._problems.append(
                "config.headers say a Content-Type, but a multipart has its own; leave it out"
            )

    def _key_header(self, headers: list[Entry], proof: Auth) -> str:
        keyed = self._spec.downstream_key
        said = keyed.header if keyed is not None else ""
        name = self._read("idempotency_header", read.header_name, "") or said
        if said and name.lower() != said.lower():
            self._problems.append(
                f"config.idempotency_header is {name}, but downstream_key says {said}; keep one"
            )
        if said:
            try:
                read.header_name(said)
            except ValueError as error:
                self._problems.append(f"downstream_key.header {error}")
        taken = {entry.name.lower() for entry in headers} | {of for _, of in proof.names}
        if name and name.lower() in taken:
            self._problems.append(f"config sets the header {name} twice; keep one of them")
        return name

    def _fixed(
        self, query: list[Entry], headers: list[Entry], cookies: list[Entry]
    ) -> tuple[str, Mapping[str, str]]:
        """What is the same in every request, written once."""
        plain = [entry for entry in query if not entry.arguments]
        text = "&".join(f"{name}={of}" for name, of in query_pairs(plain, {}, frozenset()))
        given = {name.lower() for name in (entry.name for entry in headers)}
        lines = {name: of for name, of in _PLAIN.items() if name.lower() not in given}
        for entry in headers:
            if not entry.arguments:
                lines[entry.name] = header_line(entry, {}) or ""
        if cookies and not any(entry.arguments for entry in cookies):
            pairs = cookie_pairs(cookies, {}, frozenset())
            lines["Cookie"] = "; ".join(f"{name}={of}" for name, of in pairs)
        return text, lines


def _method(value: Any) -> str:
    return read.word(*METHODS)(value.upper() if isinstance(value, str) else value)


def _arguments(spec: ToolSpec) -> frozenset[str] | None:
    """The names that arguments can have, where the schema says them outright."""
    names = argument_names(spec.input_schema)
    if names is None or (
        not names and spec.input_schema.value().get("additionalProperties") is not False
    ):
        return None
    keyed = spec.downstream_key
    return names | {keyed.argument} if keyed is not None and keyed.argument else names
