"""What the ledger and the audit say, read from the tables."""

import asyncio
from typing import Any

import msgspec
import sqlalchemy as sa

from tests.store.places import open_at
from toolgate.store.records import audit_log, outbox, tool_execution_log

OPEN = ("claimed", "started", "compensating")


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A call, as far as a test looks at it."""

    call_id: str
    tool: str
    key: str
    state: str
    fence: int
    args: str
    ended_ns: int
    undo_of: str
    again_of: str
    error_code: str

    @property
    def of(self) -> str:
        """The key of its effect."""
        return str(msgspec.json.decode(self.args)["key"])


def _told(value: object) -> object:
    return "" if value is None else value


class Books:
    """A reader beside the workers."""

    def __init__(self, url: str) -> None:
        self._database = open_at(url)

    async def close(self) -> None:
        await self._database.close()

    async def rows(self) -> list[Row]:
        column = tool_execution_log.c
        asked = sa.select(
            column.call_id,
            column.tool_name,
            column.once_key,
            column.state,
            column.fence,
            column.args,
            column.ended_ns,
            column.undo_of,
            column.again_of,
            column.error_code,
        ).order_by(column.created_ns)
        found = await self._database.read(lambda connection: connection.execute(asked).all())
        return [msgspec.convert([_told(value) for value in row], Row) for row in found]

    async def versions(self, tool: str) -> dict[str, str]:
        """By the key of each call of a tool, the fingerprint of the definition that it ran by."""
        column = tool_execution_log.c
        asked = sa.select(column.once_key, column.fingerprint).where(column.tool_name == tool)
        found = await self._database.read(lambda connection: connection.execute(asked).all())
        return {str(key): str(fingerprint) for key, fingerprint in found}

    async def open_rows(self) -> list[Row]:
        return [row for row in await self.rows() if row.state in OPEN]

    async def closed(self) -> None:
        """Return when nothing is open any more."""
        while await self.open_rows():  # noqa: ASYNC110  other processes change it
            await asyncio.sleep(0.1)

    async def age(self) -> None:
        """The leases of all that is open are over, as if their owners had been gone for long."""
        column = tool_execution_log.c
        aged = sa.update(tool_execution_log).where(column.state.in_(OPEN)).values(lease_ns=1)
        await self._database.write(lambda connection: connection.execute(aged).rowcount)

    async def hurry_events(self) -> None:
        """Whoever took events to send them has been gone for long."""
        aged = sa.update(outbox).values(next_ns=0)
        await self._database.write(lambda connection: connection.execute(aged).rowcount)

    async def audited(self) -> list[dict[str, Any]]:
        """The audit's records, as they are."""
        found = await self._database.read(
            lambda connection: connection.execute(sa.select(audit_log)).mappings().all()
        )
        return [dict(row) for row in found]
