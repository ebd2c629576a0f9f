"""A source of specs, and how it is doing."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Telling(Protocol):
    """A source that has something to tell although it gave its specs."""

    @property
    def problem(self) -> str:
        """What an operator should know; empty where all is well."""
        ...


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a source did when it was last asked."""

    source: str
    tools: int
    ok: bool = True
    problem: str = ""
    # Whether the house is well without it: a server of others, which may come and go.
    foreign: bool = False
    # Whether it failed, and what is there of it is from before.
    stale: bool = False
