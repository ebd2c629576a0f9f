"""One request, as the routes see it."""

from collections.abc import Mapping
from typing import NamedTuple

from toolgate.call import Caller
from toolgate.errors import InvalidRequest
from toolgate.runtime import Runtime
from toolgate.tenancy.keys import Key, Role, not_valid
from toolgate.tenancy.names import nearest

# Who a client says it is, where only its key is asked: not read.
_CLAIMS = frozenset({"tenant", "agent", "user", "persona", "role", "roles"})


class Request(NamedTuple):
    """Who asks, for what, with which query."""

    gate: Runtime
    key: Key
    caller: Caller
    query: Mapping[str, str]

    @property
    def is_admin(self) -> bool:
        """Whether the key may look beyond its own agent."""
        return self.key.role is not Role.AGENT

    async def confirm(self) -> None:
        """For what the gate is not asked about: the key, as the store has it now.

        Another node may have revoked it, or this one while the body was on its way.
        """
        tenancy = self.gate.tenancy
        await tenancy.freshen()
        if tenancy.world.keys.get(self.key.digest) is None:
            raise not_valid()

    def takes(self, *names: str) -> None:
        """`InvalidRequest` for any other: a misspelt one would be believed to hold."""
        for name in self.query:
            if name not in names and name not in _CLAIMS:
                raise InvalidRequest(
                    f"{name[:60]!r} is not known here; this address takes {', '.join(names)}."
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
