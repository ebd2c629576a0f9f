"""The suite that every provider keeps, for the one of `line_provider.py`: run it with pytest."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from examples.line_provider import LineProvider
from toolgate.executor.provider import Provider
from toolgate.testing.provider import ProviderSuite, Sample

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class TestLines(ProviderSuite):
    """Each of the suite's tests, against this provider and a server of ours."""

    kind = "lines"
    port = 0

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield LineProvider({})
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if line.startswith(b"slow"):
            # Until the other side goes.
            await reader.read()
        writer.write(b"no: not that\n" if line == b"fail\n" else line)
        writer.close()

    def says(self, text: str) -> Sample:
        return self._sample({"port": self.port}, text)

    def wrong(self) -> Sequence[Sample]:
        return [self._sample({}, "x"), self._sample({"port": "x"}, "x")]

    def fails(self) -> Sample | None:
        return self.says("fail")

    def slow(self) -> Sample | None:
        return self.says("slow")

    def absent(self) -> Sample | None:
        return self._sample({"port": 1}, "x")

    @staticmethod
    def _sample(config: dict[str, Any], text: str) -> Sample:
        return Sample(config=config, args={"text": text}, input_schema=TEXT)
