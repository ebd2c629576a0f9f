"""The port to what runs tools."""

from typing import Any, Protocol

from toolgate.call import Call
from toolgate.spec.tool import ToolSpec


class Provider(Protocol):
    """Knows how to run one kind of tool. It does not know that it is governed or retried."""

    def unusable(self, spec: ToolSpec) -> str | None:
        """Why this spec cannot run here, or `None`."""
        ...

    async def run(self, call: Call) -> Any:
        """The tool's result as a JSON value. A failure is a `CallFailed`."""
        ...
