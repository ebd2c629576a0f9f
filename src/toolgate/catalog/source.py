"""A source of specs, and how it is doing."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from toolgate.spec.tool import ToolSpec


class Source(Protocol):
    """Something that has tools: a folder, an endpoint, a table, a program."""

    @property
    def name(self) -> str:
        """Which one it is, in words for an operator."""
        ...

    @property
    def required(self) -> bool:
        """Whether the first start stops when it fails. What is on this machine is required."""
        ...

    async def load(self) -> Sequence[ToolSpec]:
        """All its specs, or a `CatalogError`."""
        ...


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a source did when it was last asked."""

    source: str
    tools: int
    ok: bool = True
    problem: str = ""
