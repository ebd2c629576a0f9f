"""Large outputs in memory, with the rules of those in a table; everything is gone when it is."""

from toolgate import clock
from toolgate.ledger.outputs import Blob, Piece


class MemoryOutputs:
    """The port for outputs over a dictionary. `kept` is what a test looks at."""

    def __init__(self, *, ttl: float = 86_400.0) -> None:
        self.kept: dict[tuple[str, str, str], Blob] = {}
        self._at: dict[tuple[str, str, str], int] = {}
        self._ttl_ns = round(ttl * 1e9)

    async def keep(self, blob: Blob) -> None:
        """Keep it; one that is there already is kept longer, as the output of this tool."""
        key = (blob.tenant, blob.scope, blob.digest)
        self.kept[key] = blob
        self._at[key] = clock.unix_ns()

    async def piece(
        self, tenant: str, scope: str, digest: str, *, offset: int, length: int
    ) -> Piece | None:
        """Bytes from the offset, fewer at the end."""
        key = (tenant, scope, digest)
        blob = self.kept.get(key)
        if blob is None or self._at[key] < clock.unix_ns() - self._ttl_ns:
            return None
        content = blob.content[offset : offset + length]
        size = len(blob.content)
        return Piece(content=content, size=size, media_type=blob.media_type, tool=blob.tool)
