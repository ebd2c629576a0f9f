"""Outputs that are too large to be answered at once: the port to where they are kept aside."""

from typing import Protocol

import msgspec


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """A whole output, named by its content. `scope` says whose it is within the tenant."""

    tenant: str
    scope: str
    digest: str
    tool: str
    media_type: str
    content: bytes


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some bytes of an output, from an offset, with what there is in all, and the tool's name."""

    content: bytes
    size: int
    media_type: str
    tool: str


class Outputs(Protocol):
    """Keeps outputs for a while. What is somebody else's, or gone, is as if it had never been."""

    async def keep(self, blob: Blob) -> None:
        """Keep it; one that is there already is kept longer, as the output of this tool."""
        ...

    async def piece(
        self, tenant: str, scope: str, digest: str, *, offset: int, length: int
    ) -> Piece | None:
        """Bytes from the offset, fewer at the end; `None` where there is no such output."""
        ...
