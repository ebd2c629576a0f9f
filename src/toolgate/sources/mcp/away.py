"""A server that is not reached: nothing is sent, and nothing is started."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from toolgate.asked import Line
from toolgate.errors import ProviderUnavailable
from toolgate.upstreams.upstream import Json, Kind


class Away:
    """The port for an upstream that says why it is away, whatever it is asked."""

    def __init__(self, name: str, why: str, *, is_problem: bool = True) -> None:
        """`is_problem`: whether it is to be told of the server, or is only so for who asks now."""
        self.name = name
        self.problem = why if is_problem else ""
        self._why = why
        self.last_words: Sequence[str] = ()
        self.capabilities: Mapping[str, Any] = {}
        self.server_info: Mapping[str, Any] = {}

    async def listed(self, kind: Kind) -> Sequence[Json]:  # noqa: ARG002  as the port has it
        """Nobody can tell."""
        self._refuse()

    async def call(
        self,
        tool: str,  # noqa: ARG002
        args: Json,  # noqa: ARG002
        *,
        seconds: float,  # noqa: ARG002
        line: Line | None = None,  # noqa: ARG002
        meta: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Json:
        """Nothing is sent."""
        self._refuse()

    async def request(
        self,
        method: str,  # noqa: ARG002
        params: Json,  # noqa: ARG002
        *,
        seconds: float,  # noqa: ARG002
        line: Line | None = None,  # noqa: ARG002
    ) -> Json:
        """Nothing is sent."""
        self._refuse()

    async def watch(self, uri: str, told: Callable[[str], object]) -> Callable[[], None]:  # noqa: ARG002
        """Nothing is heard."""
        self._refuse()

    def on_changed(self, told: Callable[[Kind], object]) -> None:
        """Nothing changes."""

    async def close(self) -> None:
        """There is nothing to end."""

    def _refuse(self) -> NoReturn:
        raise ProviderUnavailable(f"The MCP server {self.name!r} is away: {self._why} Nothing ran.")
