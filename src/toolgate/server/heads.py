"""The headers of a request, by their names: read once, for whichever door it is meant."""

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

_KEPT = "toolgate.heads"
_NONE: frozenset[bytes] = frozenset()


class Heads(NamedTuple):
    """Each header's last value; and which of them stood there more than once."""

    found: Mapping[bytes, bytes]
    repeated: frozenset[bytes] = _NONE

    def only(self, name: bytes) -> bytes | None:
        """The one header of this name. Of two, neither: which one a proxy saw is unknown."""
        value = self.found.get(name)
        return b"" if value is not None and name in self.repeated else value


def heads_of(scope: MutableMapping[str, Any]) -> Heads:
    """Of this request."""
    kept: Heads | None = scope.get(_KEPT)
    if kept is not None:
        return kept
    found: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    for name, value in scope["headers"]:
        if name in found:
            repeated.add(name)
        found[name] = value
    made = scope[_KEPT] = Heads(found, frozenset(repeated) if repeated else _NONE)
    return made
