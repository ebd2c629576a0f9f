"""What nodes share: decisions that another one has made, and word of a change.

It only saves work. A node without it decides by itself and looks at the store for changes, and what
comes from there is somebody else's bytes: take exactly what can be meant, and nothing else.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Protocol, cast
from urllib.parse import quote

import orjson

from toolgate.gate.policy import Health

_LONG = 64


class Shared(Protocol):
    """A cache between nodes. Nothing here raises, and nothing takes longer than a moment."""

    async def get(self, key: str) -> bytes | None:
        """What was put there, or `None`; also where nobody can tell."""
        ...

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Keep it for so many seconds, if that can be done."""
        ...

    async def announce(self, revision: int) -> None:
        """Tell every node that the world has this revision; 0 where it is not known."""
        ...

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Call this with every revision announced; with 0 where some may have been missed.

        Anybody may have announced it: look at the store, and believe only that.
        """
        ...

    def health(self) -> Health:
        """How it is doing."""
        ...


class NoShared:
    """A node on its own."""

    async def get(self, key: str) -> bytes | None:  # noqa: ARG002
        """Nothing was put."""
        return None

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Nowhere to put it."""

    async def announce(self, revision: int) -> None:
        """Nobody to tell."""

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Nobody who would tell."""

    def health(self) -> Health:
        """Nothing that could fail."""
        return Health(engine="none")


async def through(
    shared: Shared,
    key: str,
    asked: Sequence[str],
    ttl_s: float,
    ask: Callable[[], Awaitable[frozenset[str]]],
) -> frozenset[str]:
    """Some of the names that were asked about: as another node found them, or asked for here."""
    found = _names(await shared.get(key), asked)
    if found is None:
        found = await ask()
        await shared.put(key, orjson.dumps(sorted(found)), ttl_s)
    return found


def _names(value: bytes | None, asked: Sequence[str]) -> frozenset[str] | None:
    """Exactly a list of names that were asked about; whatever else it is, it was not there."""
    if value is None:
        return None
    try:
        listed = orjson.loads(value)
    except ValueError:
        return None
    if not isinstance(listed, list):
        return None
    names = cast("list[object]", listed)
    if any(type(name) is not str for name in names):
        return None
    found = frozenset(cast("list[str]", names))
    return found if found.issubset(asked) else None


def permission_key(tenant: str, persona: str, question: str) -> str:
    """Where a decision is; `question` names all else that it depends on."""
    return _key("permission", tenant, persona, question)


def _key(kind: str, *parts: str) -> str:
    return ":".join(("tool", kind, *map(_part, parts)))


def _part(text: str) -> str:
    """A part that no other text has. None is long, and none holds the sign between parts."""
    part = text if text.isalnum() and text.isascii() else quote(text, "", errors="surrogatepass")
    if len(part) <= _LONG:
        return part
    # `quote` never writes this sign, so that no name can be another one's digest.
    return "=" + sha256(part.encode()).hexdigest()
