"""The port to what runs programs: whole, from start to end, or to be talked to."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from toolgate.sandbox.policy import Policy


class Ended(StrEnum):
    """Why a program is over."""

    BY_ITSELF = "by_itself"
    BY_SIGNAL = "by_signal"
    OUT_OF_TIME = "out_of_time"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MUCH_OUTPUT = "too_much_output"
    TOO_MUCH_WRITTEN = "too_much_written"


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has run. Nothing of it is left, whatever it started."""

    ended: Ended
    # Its exit code, or the signal as a negative number.
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float


class Running(Protocol):
    """A program that runs, to be talked to on its standard streams."""

    @property
    def stdin(self) -> asyncio.StreamWriter: ...
    @property
    def stdout(self) -> asyncio.StreamReader: ...
    @property
    def stderr(self) -> asyncio.StreamReader: ...
    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Its exit code, once it is over."""
        ...

    async def end(self, patience: float = 2.0) -> None:
        """Ask it to end, then end it and all that it started. It may be called again."""
        ...


class Sandbox(Protocol):
    """One way to keep programs in."""

    @property
    def name(self) -> str:
        """Which one it is, in words for an operator."""
        ...

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        """Run to the end, in `folder`. `ProviderUnavailable` where nothing was begun."""
        ...

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        """Start, and go on. Its time is not limited here."""
        ...
