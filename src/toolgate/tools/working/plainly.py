"""A process of our own code where no sandbox is to be had: apart, without our surroundings."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence


class Plainly:
    """A running process, in a session of its own; its end is the end of all that it started."""

    def __init__(self, process: asyncio.subprocess.Process, folder: str) -> None:
        self._process = process
        # The one that it writes into, which goes with it.
        self.folder = folder

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Where it is asked."""
        assert self._process.stdin is not None  # noqa: S101  it was started with one
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Where it answers."""
        assert self._process.stdout is not None  # noqa: S101  as above
        return self._process.stdout

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Nothing comes from there."""
        nothing = asyncio.StreamReader()
        nothing.feed_eof()
        return nothing

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code, once it is over."""
        return await self._process.wait()

    async def end(self, patience: float = 0.0) -> None:  # noqa: ARG002  it has nothing to clean up
        """End it, and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def started(argv: Sequence[str], env: Mapping[str, str]) -> Plainly:
    """Start it in a folder of its own; it sees nothing of our environment, and no file that is
    open here.
    """
    folder = tempfile.mkdtemp(prefix="toolgate-")
    return Plainly(
        await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**env, "TMPDIR": folder, "NUMBA_CACHE_DIR": folder},
            cwd=folder,
            start_new_session=True,
        ),
        folder,
    )
