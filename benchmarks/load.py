"""The load generator: many connections that each send the next request when they have an answer.

It runs in a process of its own, so that what it costs is not the server's; where there are two
cores, on another one. CPU is read from the kernel's clock of the server's processes, which the
generator's own work never touches. Every answer is checked.

Who writes to a process that sleeps wakes it up, and pays for it: a fifth of a short call, where the
generator is on the same machine. One that stays awake leaves the server what is the server's.
"""

import asyncio
import os
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from typing import cast

import uvloop

from benchmarks.measure import SETTLE_SECONDS, family
from benchmarks.wires import FIRST, Wire

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 300.0
# Linux: the CPU clock of another process, all its threads, in nanoseconds.
_CPU_CLOCK = 2
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send, to whom, how often, and by how many at a time. Wires and ports take turns."""

    port: int
    more_ports: tuple[int, ...] = ()
    wires: tuple[Wire, ...]
    requests: int
    connections: int = 1
    pid: int | None = None
    first: int = FIRST
    # Only where the generator has a core that nobody else needs.
    awake: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How it went. Times are of single requests, sorted."""

    requests: int
    seconds: float
    cpu_us: float
    took_us: Sequence[float]
    wrong: Sequence[str]
    answer_bytes: int

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    def percentile(self, share: float) -> float:
        """What that share of the requests took at most, in µs."""
        return self.took_us[min(int(len(self.took_us) * share), len(self.took_us) - 1)]


def clock_seconds(pid: int) -> float:
    """CPU of one process, all its threads."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def cpu_seconds(pid: int) -> float:
    """CPU of a process and of its children that are still there."""
    return sum(map(clock_seconds, family(pid)))


@dataclass(slots=True)
class _Tally:
    numbers: Iterator[int]
    open: int
    done: asyncio.Future[None]
    took_ns: list[int] = field(default_factory=list[int])
    wrong: list[str] = field(default_factory=list[str])
    answer_bytes: int = 0

    def leave(self) -> None:
        self.open -= 1
        if not self.open and not self.done.done():
            self.done.set_result(None)


class _Connection(asyncio.Protocol):
    """One keep-alive connection of HTTP/1.1, one request at a time."""

    _transport: asyncio.Transport

    def __init__(self, wire: Wire, tally: _Tally) -> None:
        self._wire, self._tally = wire, tally
        self._number = self._sent = 0
        self._got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        """Ask for the next; the last one gone ends the load."""
        number = next(self._tally.numbers, None)
        if number is None:
            self._number = 0
            self._tally.leave()
            return
        request = self._wire.request(number)
        self._number, self._sent = number, time.perf_counter_ns()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        self._got += data
        answer = _whole(self._got)
        if answer is None:
            return
        status, body = answer
        self._got.clear()
        tally = self._tally
        tally.took_ns.append(now - self._sent)
        tally.answer_bytes = max(tally.answer_bytes, len(body))
        wrong = self._wire.wrong(self._number, status, body)
        if wrong is not None:
            tally.wrong.append(wrong)
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._number:
            self._tally.wrong.append(f"{self._number} was never answered: {exc}")
            self._number = 0
            self._tally.leave()

    def close(self) -> None:
        """Nothing more is sent."""
        self._number = 0
        self._transport.close()


def _whole(got: bytearray) -> tuple[int, bytes] | None:
    """Status and body, once all of it has come."""
    end = got.find(_HEAD_END)
    if end < 0:
        return None
    head = bytes(got[:end]).lower()
    status, start = int(head[9:12]), end + len(_HEAD_END)
    at = head.find(_LENGTH)
    if at < 0:
        is_chunked = got.endswith(b"0\r\n\r\n") or status in {202, 204}
        return (status, _unchunked(bytes(got[start:]))) if is_chunked else None
    length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
    return (status, bytes(got[start:])) if len(got) - start >= length else None


def _unchunked(text: bytes) -> bytes:
    """The body of an answer that came in chunks; of an event stream, its last message."""
    body = b""
    while text:
        size, _, text = text.partition(b"\r\n")
        length = int(size or b"0", 16)
        body, text = body + text[:length], text[length + 2 :]
    if body.startswith((b"event:", b"data:", b"id:", b":")):
        told = [
            line for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()
        ]
        return told[-1].removeprefix(b"data:").strip()
    return body


async def loaded(load: Load) -> Served:
    """All of a load, on this loop."""
    loop = asyncio.get_running_loop()
    last = load.first + load.requests
    tally = _Tally(iter(range(load.first, last)), load.connections, loop.create_future())
    connections: list[_Connection] = []
    ports = cycle((load.port, *load.more_ports))
    for wire, port in islice(zip(cycle(load.wires), ports, strict=False), load.connections):
        _, made = await loop.create_connection(
            lambda wire=wire: _Connection(wire, tally), LOOPBACK, port
        )
        connections.append(made)
    cpu = 0.0 if load.pid is None else cpu_seconds(load.pid)
    started = time.perf_counter()
    for connection in connections:
        connection.send()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while load.awake and not tally.done.done():  # noqa: ASYNC110  it must not wait
            await asyncio.sleep(0)
        await tally.done
    seconds = time.perf_counter() - started
    # What is put off until after the answers is theirs too.
    await asyncio.sleep(SETTLE_SECONDS)
    cpu = 0.0 if load.pid is None else cpu_seconds(load.pid) - cpu
    for connection in connections:
        connection.close()
    return Served(
        requests=load.requests,
        seconds=seconds,
        cpu_us=cpu / load.requests * 1e6,
        took_us=sorted(took / 1e3 for took in tally.took_ns),
        wrong=tuple(tally.wrong),
        answer_bytes=tally.answer_bytes,
    )


def run(load: Load) -> Served:
    """All of a load, in this process."""
    return uvloop.run(loaded(load))


def pinned(core: int, pid: int = 0) -> None:
    """Keep a process (0: this one), and what it starts, on one core, where there is another."""
    there = sorted(os.sched_getaffinity(pid))
    if len(there) > 1:
        os.sched_setaffinity(pid, {there[core % len(there)]})


@contextmanager
def generator(core: int | None = 1) -> Generator[Executor]:
    """A process that runs loads, on a core of its own, or wherever there is room."""
    pin = None if core is None else partial(pinned, core)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=pin) as process:
        yield process


def checked(served: Served) -> Served:
    """As it is, if every answer was the right one."""
    if served.wrong:
        raise ValueError(f"{len(served.wrong):,} of {served.requests:,} answers: {served.wrong[0]}")
    return served
