"""What several nodes share, what each part of a fleet spends, and nodes smaller than a core.

PostgreSQL and Redis are the tests' own (`make services`). Not here: the nodes (`houses`), the load
(`load`), and what is measured (`nodes`).
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.load import clock_seconds, pinned
from benchmarks.measure import family
from tests.servers.postgres import Postgres
from tests.servers.process import LOOPBACK
from tests.servers.redis import Redis

ROLE = "fleet"
SETTINGS = """
[store]
url = "postgresql://{role}@{host}:{port}/{name}"
row_security = "require"

[cache]
url = "{redis}"
"""
TICK_SECONDS = 0.004
# How much of what it did not use a node may use later, as a part of a second.
SAVED_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One PostgreSQL and one Redis, for any number of nodes."""

    postgres: Postgres
    redis: Redis

    def settings(self, name: str) -> str:
        """What a node says that has the store of this name and Redis."""
        at = {"host": LOOPBACK, "port": self.postgres.port, "redis": self.redis.url}
        return SETTINGS.format(role=ROLE, name=name, **at)

    def pin(self, core: int) -> None:
        """Keep both on one core, away from a node on another."""
        for server in (self.postgres, self.redis):
            for pid in family(server.pid):
                # One that has just ended is nowhere.
                with suppress(ProcessLookupError):
                    pinned(core, pid)


@contextmanager
def shared(*stores: str) -> Generator[Shared]:
    """Both, with an empty database of each name, whose role row security holds for."""
    with Postgres(durable=True) as postgres, Redis() as redis:
        asyncio.run(_made(postgres, stores))
        yield Shared(postgres=postgres, redis=redis)


async def _made(postgres: Postgres, stores: Sequence[str]) -> None:
    import asyncpg  # noqa: PLC0415  an extra

    owner = await cast("Callable[[str], Awaitable[Any]]", asyncpg.connect)(postgres.dsn)
    try:
        await owner.execute(f"CREATE ROLE {ROLE} LOGIN")
        for name in stores:
            await owner.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
    finally:
        await owner.close()


class Meter:
    """What each part has spent of the processor since this was made."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        """`parts`: the processes of each, by its name; all that they start is theirs too."""
        self._parts = parts
        self._before = self._now

    @property
    def _now(self) -> dict[str, float]:
        return {name: sum(map(_spent, pids)) for name, pids in self._parts.items()}

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds of each part."""
        return {name: spent - self._before[name] for name, spent in self._now.items()}


def _spent(pid: int) -> float:
    """CPU of a process and its descendants, those that have ended included."""
    while True:
        try:
            return sum(clock_seconds(one) + _reaped(one) for one in family(pid))
        except OSError:
            # One of them has ended between two looks.
            os.kill(pid, 0)


def _reaped(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICKS


@contextmanager
def held_to(share: float, pids: Sequence[int]) -> Generator[None]:
    """Each of them gets this part of a core at most, as by a container's limit."""
    is_over = threading.Event()
    keeper = threading.Thread(target=_hold, args=(share, pids, is_over))
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()


def _hold(share: float, pids: Sequence[int], is_over: threading.Event) -> None:
    used = {pid: clock_seconds(pid) for pid in pids}
    left = dict.fromkeys(pids, 0.0)
    looked = time.monotonic()
    while not is_over.wait(TICK_SECONDS):
        now = time.monotonic()
        for pid in pids:
            so_far = clock_seconds(pid)
            left[pid] += share * (now - looked) - (so_far - used[pid])
            left[pid] = min(left[pid], share * SAVED_SECONDS)
            used[pid] = so_far
            os.kill(pid, signal.SIGCONT if left[pid] > 0 else signal.SIGSTOP)
        looked = now
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
