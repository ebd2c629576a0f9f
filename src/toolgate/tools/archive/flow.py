"""How the content of an archive comes: entry by entry, in pieces, to whoever wants it."""

from collections.abc import Sequence
from typing import Protocol

from toolgate.tools.archive.entry import Entry

PIECE = 65_536


class Full(Exception):
    """Nothing more is taken."""


class Taking(Protocol):
    """Takes what comes; raises `Full` where it has enough."""

    def wants(self, place: int) -> bool:
        """Whether the entry of that place, counted from 0, is to come."""
        ...

    def take(self, place: int, piece: bytes) -> None:
        """The next piece of an entry."""
        ...


class Reader(Protocol):
    """One kind of archive, over its bytes. Both verbs stop at the limits while they read."""

    format: str

    def entries(self) -> Sequence[Entry]:
        """What it says that it holds, in its order."""
        ...

    def pump(self, taking: Taking) -> None:
        """Give the files that are wanted, in order."""
        ...
