"""Relations behind a breaker, with a memory of how the last question went."""

from collections.abc import Sequence
from typing import Protocol

from toolgate.call import Caller
from toolgate.engines.guard import Guarded
from toolgate.errors import RelationsUnavailable
from toolgate.gate.policy import Health


class Answering(Protocol):
    """An engine on a server."""

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        """Of these tools, those that the caller's user may execute."""
        ...


class Watched:
    """The relations port over a server that can be away. While it is, the answer is no at once."""

    external = True

    def __init__(self, engine: Answering, name: str, problem: str = "") -> None:
        self._engine = engine
        self._name = name
        self._problem = problem
        self._guard = Guarded(RelationsUnavailable, "relations server")

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        """Of these tools, those that the caller's user may execute."""
        try:
            found = await self._guard(
                lambda: self._engine.executable(caller, tools, token=token, fresh=fresh)
            )
        except RelationsUnavailable as error:
            self._problem = error.message
            raise
        self._problem = ""
        return found

    def health(self) -> Health:
        """How the last question went."""
        return Health(engine=self._name, ok=not self._problem, problem=self._problem)
