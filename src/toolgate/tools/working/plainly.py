"""A process of our own code where no sandbox is to be had: apart, without our surroundings."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence


class Plainly:
    """A running process, in a session of its own; its end is the end of all that it started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

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


async def started(argv: Sequence[str], env: Mapping[str, str]) -> Plainly:
    """Start it; it sees nothing of our environment, and no file that is open here."""
    return Plainly(
        await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(env),
            start_new_session=True,
        )
    )
