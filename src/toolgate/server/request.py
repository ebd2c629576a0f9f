"""One request, as the routes see it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.runtime import Runtime
from toolgate.server.auth import stands
from toolgate.server.body import Receive, read_object
from toolgate.server.rights import Right, may
from toolgate.tenancy.keys import Key, not_valid
from toolgate.tenancy.names import nearest

Header = tuple[bytes, bytes]
# Who a client says it is, where only its key is asked: not read.
_CLAIMS = frozenset({"tenant", "agent", "user", "persona", "role", "roles"})


async def _nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


class Request(NamedTuple):
    """Who asks, for what, with which query. `names` are those in the path.

    `again` looks at the key once more, for an answer that takes long.
    """

    gate: Runtime
    key: Key
    caller: Caller
    query: Mapping[str, str]
    names: tuple[str, ...] = ()
    headers: Iterable[Header] = ()
    receive: Receive = _nothing
    again: Callable[[], Awaitable[Key]] | None = None
    path: str = ""

    async def body(self, *, or_nothing: bool = False, most: int = 0) -> dict[str, Any]:
        """The JSON object that was sent; with `or_nothing`, an empty body has no fields."""
        return await read_object(self.receive, or_nothing=or_nothing, most=most)

    def header(self, name: bytes) -> bytes | None:
        """The one header of this name; of two, neither."""
        values = [value for header, value in self.headers if header == name]
        return values[0] if len(values) == 1 else None

    @property
    def is_admin(self) -> bool:
        """Whether the key may look beyond its own agent."""
        return may(self.key, Right.EXPLAIN)

    async def confirm(self) -> None:
        """For what the gate is not asked about: the key, as the store has it now.

        Another node may have revoked it, or this one while the body was on its way.
        """
        tenancy = self.gate.tenancy
        await tenancy.freshen()
        if not stands(self.key, tenancy.world):
            raise not_valid()

    def takes(self, *names: str) -> None:
        """`InvalidRequest` for any other: a misspelt one would be believed to hold."""
        for name in self.query:
            if name not in names and name not in _CLAIMS:
                known = ", ".join(names) or "none"
                raise InvalidRequest(
                    f"{name[:60]!r} is not known here; the fields of this address: {known}."
                    + nearest(name, names)
                )

    def number(self, name: str, *, default: int, most: int) -> int:
        """A whole number from the query."""
        given = self.query.get(name)
        if given is None:
            return default
        is_number = given.isascii() and given.isdigit() and len(given) <= 9
        if not is_number or not 1 <= int(given) <= most:
            raise InvalidRequest(f"{name!r} must be a whole number from 1 to {most:,}.")
        return int(given)
