"""Large outputs in a table, each once for its owner, until they are old."""

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.ledger.outputs import Blob, Piece
from toolgate.store.database import Database
from toolgate.store.prune import Prune
from toolgate.store.records import blobs as table
from toolgate.store.text import storable
from toolgate.store.upsert import upsert


class TableOutputs:
    """The port for outputs over a database. `ttl` is in seconds."""

    def __init__(self, database: Database, *, ttl: float = 86_400.0) -> None:
        self._database = database
        self._ttl_ns = round(ttl * 1e9)
        self._prune = Prune(database, table.c.created_ns, self._ttl_ns)

    def start(self) -> None:
        """Delete what has become old since the last time."""
        self._prune.soon()

    async def close(self) -> None:
        """Let what was begun come to its end."""
        await self._prune.close()

    async def keep(self, blob: Blob) -> None:
        """Keep it; one that is there already is kept longer, as the output of this tool."""
        row = {
            "tenant_id": blob.tenant,
            "scope": storable(blob.scope),
            "digest": blob.digest,
            "tool_name": storable(blob.tool),
            "media_type": blob.media_type,
            "size": len(blob.content),
            "content": blob.content,
            "created_ns": clock.unix_ns(),
        }
        await self._database.write(
            lambda connection: upsert(connection, table, [row], change=("created_ns", "tool_name")),
            tenant=blob.tenant,
        )
        self._prune.soon()

    async def piece(
        self, tenant: str, scope: str, digest: str, *, offset: int, length: int
    ) -> Piece | None:
        """Cut by the database: a piece of a large output costs no more than its size."""
        column = table.c
        question = sa.select(
            sa.func.substr(column.content, offset + 1, length, type_=sa.LargeBinary),
            column.size,
            column.media_type,
            column.tool_name,
        ).where(
            column.tenant_id == storable(tenant),
            column.scope == storable(scope),
            column.digest == storable(digest),
            column.created_ns >= clock.unix_ns() - self._ttl_ns,
        )

        def work(connection: Connection) -> Piece | None:
            found = connection.execute(question).one_or_none()
            if found is None:
                return None
            content, size, media_type, tool = found
            return Piece(content=bytes(content or b""), size=size, media_type=media_type, tool=tool)

        return await self._database.read(work, tenant=tenant)
