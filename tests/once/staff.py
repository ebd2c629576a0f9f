"""Workers, as a test sees them: started, told, killed, stopped and heard."""

import asyncio
import itertools
import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.once.nest import Nest

Answer = dict[str, Any]
_SECONDS = 30.0


class Hand:
    """One worker. What it had not answered when it died is answered `None`."""

    def __init__(self) -> None:
        self.pid = 0
        self.up = asyncio.Event()
        self.gone = asyncio.Event()
        self.held: set[str] = set()
        self._ids = itertools.count()
        self._waiting: dict[int, asyncio.Future[Answer | None]] = {}
        self._writer: asyncio.StreamWriter | None = None

    def call(self, tool: str, key: str, *, once: str = "", **more: Any) -> Any:
        """A call whose idempotency key is the key of its effect, unless it says; a future.

        One in a turn has the key that the turn gives it.
        """
        args = {"key": key, "hold": more.pop("hold", "")}
        own = once or key if "turn" not in more else None
        return self.ask(tool=tool, args=args, once=own, **more)

    def ask(self, **words: Any) -> Any:
        """Anything that a worker can be told to do; a future."""
        number = next(self._ids)
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        if self.gone.is_set():
            answer.set_result(None)
            return answer
        self._waiting[number] = answer
        self._tell({"id": number, **words})
        return answer

    def go(self, key: str) -> None:
        self._tell({"go": key})

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    @property
    def is_stopped(self) -> bool:
        """A signal takes a moment to be heard."""
        # Behind its name, which can hold anything.
        return Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(") ")[2][0] == "T"

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _tell(self, words: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(words).encode() + b"\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        with suppress(ConnectionError, asyncio.CancelledError):
            while line := await reader.readline():
                if line.endswith(b"\n"):
                    self._hear(json.loads(line))
        self.gone.set()
        self.up.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)
        self._waiting.clear()
        writer.close()

    def _hear(self, told: Answer) -> None:
        if "pid" in told:
            self.pid = told["pid"]
            self.up.set()
        elif "held" in told:
            self.held.add(told["held"])
        else:
            answer = self._waiting.pop(told["id"])
            if not answer.done():
                answer.set_result(told)


class Staff:
    """The workers of one store. They end with the block."""

    def __init__(self, nest: Nest, folder: Path, url: str, recorder: int) -> None:
        self._nest = nest
        self._folder = folder
        self.url = url
        self._recorder = recorder
        self._numbers = itertools.count()
        self._servers: list[asyncio.Server] = []
        self._hands: list[Hand] = []

    async def start(
        self,
        crash_at: str = "",
        *,
        lease: float = 1.0,
        wait: float = 20.0,
        ttl: float = 3_600.0,
        events: str = "",
        may_fall: bool = False,
    ) -> Hand:
        """A worker that is ready. One that is to crash may do so before it is."""
        hand = Hand()
        # The folder of a test can be longer than the name of a socket may be.
        wire = f"/tmp/once-{os.getpid()}-{id(self):x}-{next(self._numbers)}"  # noqa: S108
        self._servers.append(await asyncio.start_unix_server(hand.serve, wire, limit=2**24))
        self._hands.append(hand)
        terms = {
            "wire": wire,
            "recorder": self._recorder,
            "url": self.url,
            "root": str(self._folder),
            "crash_at": crash_at,
            "lease": lease,
            "wait": wait,
            "ttl": ttl,
            "events": events,
        }
        self._nest.hatch(terms)
        async with asyncio.timeout(_SECONDS):
            await hand.up.wait()
        with suppress(FileNotFoundError):
            os.unlink(wire)  # noqa: PTH108
        assert may_fall or not hand.gone.is_set(), "the worker did not come up"
        return hand

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for hand in self._hands:
            if hand.pid and not hand.gone.is_set():
                hand.kill()
        for hand in self._hands:
            async with asyncio.timeout(_SECONDS):
                await hand.gone.wait()
        for server in self._servers:
            server.close()
