"""How a tool reaches the recorder: one connection, any number of questions at a time."""

import asyncio
import itertools
import json
from typing import Any

from tests.servers.process import LOOPBACK


class FarSide:
    """Asks, and waits for the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ids = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._hearing = asyncio.create_task(self._hear(reader))

    @classmethod
    async def reach(cls, port: int) -> "FarSide":
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    async def ask(self, **asked: Any) -> dict[str, Any]:
        number = next(self._ids)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps({"id": number, **asked}).encode() + b"\n")
        return await waiting

    async def close(self) -> None:
        self._writer.close()
        await self._hearing

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            told = json.loads(line)
            self._waiting.pop(told.pop("id")).set_result(told)
