"""The port to one MCP server: what it offers, and a call of one of its tools."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from toolgate.asked import Line

Json = dict[str, Any]
# What is told of one that nobody has asked for anything.
NOT_YET = "it was not reached yet."


class Kind(StrEnum):
    """What a server can have; each can change while it runs."""

    TOOLS = "tools"
    RESOURCES = "resources"
    TEMPLATES = "resourceTemplates"
    PROMPTS = "prompts"


class Upstream(Protocol):
    """One server, by one warm connection that heals. Values are as the server sent them.

    Whatever is asked while the server is away is a `ProviderUnavailable` where nothing was sent,
    and a `CallFailed` where it may have been.
    """

    @property
    def name(self) -> str: ...
    @property
    def problem(self) -> str:
        """Why it is away, in words for an operator; empty while it answers."""
        ...

    @property
    def last_words(self) -> Sequence[str]:
        """The last lines that its program complained with before it ended, without secrets."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it said it has, empty before it was reached."""
        ...

    @property
    def server_info(self) -> Mapping[str, Any]: ...

    async def listed(self, kind: Kind) -> Sequence[Json]:
        """All pages of one list, kept until the server says that it has changed."""
        ...

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """The result of `tools/call`, whole: content, structuredContent, isError, _meta.

        `line` hears progress and logs, and is asked what the server asks where that is allowed.
        Cancelling it tells the server.
        """
        ...

    async def request(
        self, method: str, params: Json, *, seconds: float, line: Line | None = None
    ) -> Json:
        """Any other request: `resources/read`, `prompts/get`, `completion/complete`.

        `line` as for a call: a prompt may ask something before it is given.
        """
        ...

    async def watch(self, uri: str, told: Callable[[str], object]) -> Callable[[], None]:
        """Hear when a resource changes, until what is returned is called."""
        ...

    def on_changed(self, told: Callable[[Kind], object]) -> None:
        """Hear when one of its lists has changed, and when it went or came back."""
        ...

    async def close(self) -> None:
        """End it, and whatever was started for it."""
        ...
