"""Pipes to a program: descriptors that are closed whatever happens, and what is read from them."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

_CHUNK = 65_536
_SEALED = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class Descriptors:
    """Descriptors of ours that are open; all are closed at the end of `with`."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                os.close(each)
        self._open.clear()

    def keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def released(self, descriptor: int) -> int:
        """No longer closed here."""
        self._open.remove(descriptor)
        return descriptor

    def pipe(self) -> tuple[int, int]:
        """To read from, to write to."""
        reader, writer = os.pipe()
        return self.keep(reader), self.keep(writer)

    def holding(self, content: bytes) -> int:
        """One that is read from its beginning, with nothing behind the content."""
        made = self.keep(os.memfd_create("toolgate", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        view = memoryview(content)
        while view:
            view = view[os.write(made, view) :]
        # Whoever gets it could open it anew, to write: no longer.
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, _SEALED)
        # Another one, that stands at the beginning.
        return self.keep(os.open(f"/proc/self/fd/{made}", os.O_RDONLY | os.O_CLOEXEC))


class Inflow:
    """What comes out of a pipe, told piece by piece until its end; the pipe is closed then."""

    def __init__(self, descriptor: int, told: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._told = told
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if piece:
            self._told(piece)
        else:
            self.close()

    def rest(self) -> None:
        """Leave what comes in the pipe, until it is drained."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)

    def drain(self) -> None:
        """Read what is there, though the loop has not said so yet."""
        while self._descriptor >= 0:
            try:
                piece = os.read(self._descriptor, _CHUNK)
            except OSError:
                piece = b""
            if not piece:
                self.close()
                return
            self._told(piece)

    def close(self) -> None:
        """Read no more. It may be called again."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        if not self.ended.done():
            self.ended.set_result(None)
