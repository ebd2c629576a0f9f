"""Standard input as a stream, whatever it is: a pipe, a terminal, a file, a device, or nothing."""

import asyncio
import os
import stat
import sys
from contextlib import AsyncExitStack

from toolgate import upkeep

_CHUNK = 65_536


class _Feeding(asyncio.ReadTransport):
    """Goes on and pauses as the stream says, which keeps only so much that nobody has read."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted = asyncio.Event()
        self._wanted.set()

    def pause_reading(self) -> None:
        """Enough for now."""
        self._wanted.clear()

    def resume_reading(self) -> None:
        """There is room again."""
        self._wanted.set()

    async def feed(self, reader: asyncio.StreamReader, descriptor: int) -> None:
        """All that can be read, up to its end."""
        try:
            while chunk := await asyncio.to_thread(os.read, descriptor, _CHUNK):
                reader.feed_data(chunk)
                await self._wanted.wait()
        except OSError:
            # What cannot be read, such as a folder, holds nothing.
            pass
        finally:
            reader.feed_eof()


async def standard_input(stack: AsyncExitStack, *, limit: int) -> asyncio.StreamReader:
    """What was given to this process, with lines of so many bytes at the most."""
    reader = asyncio.StreamReader(limit=limit)
    # So it is where whoever started us has closed it.
    if sys.stdin is None:
        reader.feed_eof()
        return reader
    descriptor = sys.stdin.fileno()
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor):
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return reader
    # Of these the loop cannot be told when there is more: they are asked.
    feeding = _Feeding()
    reader.set_transport(feeding)
    upkeep.keep_doing(feeding.feed(reader, descriptor), stack)
    return reader
