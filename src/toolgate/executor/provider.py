"""The port to what runs tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class Choosy(Protocol):
    """A provider with rules of its own for arguments, beyond the schema. It need not have any."""

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """What `run` would refuse of these, as pointers with reasons; nothing where they fit.

        Asked before a person is, and before a call is claimed: it begins, sends and reads nothing,
        and does not wait. `run` still refuses by itself. Where it is known that nothing can run,
        whatever the arguments, one of `NOT_BEGUN` is raised.
        """
        ...


@runtime_checkable
class Keyed(Protocol):
    """A provider that hands `call.downstream_key` to the far side. It need not do that."""

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """Why the far side would not be told the key, or `None` where it is.

        Asked of usable specs alone.
        """
        ...


def keyless(provider: Provider, spec: ToolSpec) -> str | None:
    """Why a spec is not what it says: it would be tried again under a key that nobody hears of."""
    if spec.downstream_key is None or spec.effect.repeatable:
        return None
    if isinstance(provider, Keyed):
        return provider.unkeyed(spec)
    return (
        f"it has a downstream_key, but provider {spec.provider!r} hands no key on: trying again "
        "could do it twice; leave downstream_key out, and write a probe if a tool can tell whether "
        "it happened"
    )
