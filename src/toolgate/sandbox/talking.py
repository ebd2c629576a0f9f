"""A program that runs, and is talked to on its standard streams."""

import asyncio
import contextlib
from typing import Self

from toolgate.sandbox.child import Child
from toolgate.sandbox.pipes import Descriptors

_LEAST_BUFFER = 65_536


class Talking:
    """Its streams, and its end. Whoever has it ends it."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._pipes: list[asyncio.BaseTransport] = []
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self.stderr: asyncio.StreamReader

    @classmethod
    async def on(
        cls, child: Child, opened: Descriptors, ends: tuple[int, int, int], *, most: int
    ) -> Self:
        """Take over the three pipes. `most`: what is kept of each stream until it is read."""
        made = cls(child)
        stdin, stdout, stderr = ends
        try:
            made.stdout = await made._reader(opened.released(stdout), most)
            made.stderr = await made._reader(opened.released(stderr), most)
            made.stdin = await made._writer(opened.released(stdin))
        except BaseException:
            made.hang_up()
            raise
        return made

    @property
    def pid(self) -> int:
        return self._child.pid

    async def wait(self) -> int:
        """Its exit code, once it is over."""
        return await self._child.over()

    async def end(self, patience: float = 2.0) -> None:
        """Close its input, ask it to end, then end it and all that it started."""
        try:
            self.stdin.close()
            if patience > 0 and not self._child.is_over:
                self._child.ask()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._child.over(), patience)
        finally:
            self._child.kill()
            self.hang_up()
            await self._child.over()

    def hang_up(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes:
            pipe.close()

    async def _reader(self, descriptor: int, most: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=max(most, _LEAST_BUFFER))
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe = open(descriptor, "rb", buffering=0)  # noqa: ASYNC230, SIM115
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        self._pipes.append(transport)
        return reader

    async def _writer(self, descriptor: int) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        pipe = open(descriptor, "wb", buffering=0)  # noqa: ASYNC230, SIM115
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), pipe
        )
        self._pipes.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)
