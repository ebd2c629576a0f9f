"""The headers of a request, by their names: read once, for whichever door it is meant."""

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import msgspec

_KEPT = "toolgate.heads"
_NONE: frozenset[bytes] = frozenset()


class Heads(msgspec.Struct, frozen=True):
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
    headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
    found = dict(headers)
    repeated = _NONE if len(found) == len(headers) else _twice(headers)
    made = scope[_KEPT] = Heads(found, repeated)
    return made


def _twice(headers: Sequence[tuple[bytes, bytes]]) -> frozenset[bytes]:
    counted = Counter(name for name, _ in headers)
    return frozenset(name for name, times in counted.items() if times > 1)
