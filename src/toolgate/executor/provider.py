"""The port to what runs tools."""

from typing import Any, Protocol

from toolgate.call import Call
from toolgate.errors import (
    CircuitOpen,
    InvalidArguments,
    OutOfTime,
    Overloaded,
    ProviderUnavailable,
    RateLimited,
    UnsupportedProvider,
)
from toolgate.spec.tool import ToolSpec

# The kinds that toolgate itself brings.
KINDS = frozenset({"builtin", "composio", "http", "mcp", "plugin", "python", "queue", "shell"})
# What says that nothing was begun; any other refusal may come after the effect.
NOT_BEGUN = (
    CircuitOpen,
    InvalidArguments,
    OutOfTime,
    Overloaded,
    ProviderUnavailable,
    RateLimited,
    UnsupportedProvider,
)


class Provider(Protocol):
    """Knows how to run one kind of tool. It does not know that it is governed or retried."""

    def unusable(self, spec: ToolSpec) -> str | None:
        """Why this spec cannot run here, or `None`."""
        ...

    async def run(self, call: Call) -> Any:
        """The tool's result as a JSON value. A failure is a `CallFailed`.

        Where nothing was begun, one of `NOT_BEGUN` says so.
        """
        ...
