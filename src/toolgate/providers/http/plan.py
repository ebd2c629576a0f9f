"""A tool's config, read once: what every request of it is made from."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolgate.providers.http.address import Address, Unfit
from toolgate.providers.http.auth import Auth
from toolgate.providers.http.body import Body
from toolgate.providers.http.entry import Entry, cookie_pairs, header_line, query_pairs
from toolgate.providers.http.reading import Reading
from toolgate.providers.http.style import pairs, usual


class Request(NamedTuple):
    """One request, without credentials."""

    url: str
    headers: dict[str, str]
    body: bytes | None


class Plan(NamedTuple):
    """How requests of one tool are made and their answers read."""

    method: str
    address: Address
    query: tuple[Entry, ...]
    fixed_query: str
    headers: tuple[Entry, ...]
    fixed_headers: Mapping[str, str]
    cookies: tuple[Entry, ...]
    body: Body | None
    # Where arguments go that nothing names.
    rest_in_query: bool
    used: frozenset[str]
    # Names of the query and of cookies that no argument may bring along, in small letters.
    reserved: frozenset[str]
    auth: Auth
    reading: Reading
    timeout: float | None
    redirects: int
    # Whether a header of its own says what the body is.
    is_typed: bool
    key_header: str
    key_argument: str

    def request(self, args: Mapping[str, Any], key: str) -> Request:
        """The request for these arguments; `Unfit` says which of them cannot be sent."""
        if key and self.key_argument:
            args = {**args, self.key_argument: key}
        url = self.address.filled(args)
        given = query_pairs(self.query, args, self.reserved) if self.query else []
        body = self.body
        rest: dict[str, Any] | None = None
        if len(self.used) < len(args) or not self.used.issuperset(args):
            rest = {name: of for name, of in args.items() if name not in self.used}
            if body is None or body.arguments is not None:
                given += self._rest(rest)
        query = "&".join([f"{name}={of}" for name, of in given])
        if self.fixed_query:
            query = f"{self.fixed_query}&{query}" if query else self.fixed_query
        headers = self._lines(args, key)
        written = None
        if body is not None:
            written = body.written(args if body.arguments is not None else rest or {})
        if written is None:
            return Request(f"{url}?{query}" if query else url, headers, None)
        if not self.is_typed:
            headers["Content-Type"] = written[1]
        return Request(f"{url}?{query}" if query else url, headers, written[0])

    def _lines(self, args: Mapping[str, Any], key: str) -> dict[str, str]:
        headers = dict(self.fixed_headers)
        for entry in self.headers:
            line = header_line(entry, args)
            if line is not None:
                headers[entry.name] = line
        if self.cookies:
            cookies = cookie_pairs(self.cookies, args, self.reserved)
            if cookies:
                headers["Cookie"] = "; ".join([f"{name}={of}" for name, of in cookies])
        if key and self.key_header:
            headers[self.key_header] = key
        return headers

    def _rest(self, rest: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Arguments that nothing names, in the query."""
        found: list[tuple[str, str]] = []
        for name, of in rest.items():
            if not self.rest_in_query:
                raise Unfit(name, "is sent nowhere by this tool; leave it out")
            if name.lower() in self.reserved:
                raise Unfit(name, "is set by the tool itself; leave it out")
            found += pairs(name, of, usual(of))
        return found
