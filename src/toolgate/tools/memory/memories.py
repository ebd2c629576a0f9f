"""Memories as a port: in the store of this house, or in a service of an operator's."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from toolgate.tools.memory.condition import Conditions
from toolgate.tools.memory.remembered import Remembered


class Recalled(msgspec.Struct, frozen=True):
    """A memory, and how near it is to what was asked, from 0 to 1."""

    memory: Remembered
    score: float

    def told(self) -> dict[str, Any]:
        """As a caller reads it; what is not known is left out."""
        one = self.memory
        about = {"agent": one.agent, "user": one.user, "session": one.session, "tags": one.tags}
        known = {name: value for name, value in about.items() if value}
        return {"id": one.id, "text": one.text, "score": self.score, "saved": one.saved, **known}


class Memories(Protocol):
    """One owner's."""

    async def save(self, memory: Remembered) -> None:
        """Keep it."""
        ...

    async def recall(self, query: str, fits: Conditions) -> Sequence[Recalled]:
        """Those that fit, best first."""
        ...

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        """Take them away; those that were there."""
        ...

    async def note(self) -> str:
        """What a caller has to know about what was found; mostly nothing."""
        ...
