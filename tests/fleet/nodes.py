"""Several real `toolgate serve` at one PostgreSQL and one Redis, each in a folder of its own.

The nodes share nothing else: no folder, no file. Their tools leave marks in one file, which tests
believe before any answer.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import asyncpg

from tests.fleet.balancer import Balancer
from tests.server.serving import Answer, Serving
from tests.servers.postgres import Postgres
from tests.servers.process import LOOPBACK, free_port
from toolgate import Toolgate
from toolgate.configuration import load

SETTINGS = """\
[store]
url = "{store}"

[cache]
url = "{redis}"

[tools]
builtin = ["echo", "read_output"]
"""
Door = Callable[..., Answer]


class Node(Serving):
    """One of them. It can be killed, and come back at its port."""

    def __init__(self, root: Path, port: int, before: str = "") -> None:
        super().__init__(root, "--port", str(port), before=before)

    def kill(self) -> None:
        """At once, whatever it was doing."""
        self.process.kill()
        self.process.wait()

    def stand_still(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


class Fleet:
    """So many nodes and the balancer before them. `settings` is more of `toolgate.toml`."""

    def __init__(
        self,
        root: Path,
        *,
        nodes: int,
        store: str,
        redis: str,
        files: Mapping[str, str],
        settings: str = "",
        before: str = "",
    ) -> None:
        self.root = root
        self.marks = root / "marks"
        self.marks.touch()
        self._before = before
        self._ports = [free_port() for _ in range(nodes)]
        for number in range(nodes):
            folder = self.folder(number)
            folder.mkdir()
            toml = SETTINGS.format(store=store, redis=redis) + settings
            for name, text in {"toolgate.toml": toml, **files}.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text.replace("@MARKS@", str(self.marks)), "utf-8")
        self.nodes: list[Node] = []
        self.balancer = Balancer(self._ports)

    def folder(self, number: int) -> Path:
        return self.root / f"node{number}"

    def __enter__(self) -> Self:
        try:
            # Together, on a store that may be empty: one of them makes the tables.
            with ThreadPoolExecutor() as threads:
                starts = [threads.submit(self._started, n) for n in range(len(self._ports))]
                self.nodes = [one.result() for one in starts]
            self.balancer.__enter__()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.balancer.__exit__(kind, error, at)
        self._end()

    def _end(self) -> None:
        for node in self.nodes:
            node.go_on()
            node.process.terminate()
        for node in self.nodes:
            node.stop()

    def _started(self, number: int) -> Node:
        return Node(self.folder(number), self._ports[number], self._before)

    def restart(self, number: int) -> None:
        """Anew, at the same port and in the same folder; what is left of the old one is ended."""
        self.nodes[number].stop()
        self.nodes[number] = self._started(number)

    @asynccontextmanager
    async def gate(self) -> AsyncGenerator[Toolgate]:
        """A house at the same store, for a test to set things up by."""
        async with Toolgate.open(load(self.folder(0) / "toolgate.toml"), scheduled=False) as found:
            yield found

    def ask(self, method: str, path: str, **more: Any) -> Answer:
        """Through the balancer: of the next node."""
        return asked(self.balancer.port, method, path, **more)

    def marked(self) -> Counter[str]:
        """How often each effect happened, in whichever process."""
        return Counter(line.split()[0] for line in self.marks.read_text("utf-8").splitlines())

    def served(self, path: str) -> Sequence[int]:
        """The nodes that were asked for this, in their order."""
        return [
            self._ports.index(port)
            for port, line in self.balancer.log
            if line.split()[1].partition("?")[0] == path
        ]


def asked(port: int, method: str, path: str, **more: Any) -> Answer:
    """One request to whoever listens there."""

    class At(Serving):
        def __init__(self) -> None:
            self.greeting = {"url": f"http://127.0.0.1:{port}"}

    return At().ask(method, path, **more)


async def database(server: Postgres) -> str:
    """An empty one of its own, with nothing in it yet; it goes with the server."""
    name = f"t{uuid4().hex}"
    owner = await asyncpg.connect(server.dsn)
    try:
        await owner.execute(f"CREATE DATABASE {name}")
    finally:
        await owner.close()
    return server.dsn.removesuffix("/postgres") + f"/{name}"


def made_database(server: Postgres) -> str:
    """The same, for a fixture that has no loop."""
    return asyncio.run(database(server))


def walled_database(server: Postgres) -> tuple[str, str]:
    """One for a role that row security holds for, and the same as its owner sees it."""
    whole = made_database(server)
    name = whole.rpartition("/")[2]

    async def given() -> None:
        owner = await asyncpg.connect(server.dsn)
        try:
            await owner.execute(f"CREATE ROLE {name} LOGIN")
            await owner.execute(f"ALTER DATABASE {name} OWNER TO {name}")
        finally:
            await owner.close()

    asyncio.run(given())
    return f"postgresql://{name}@{LOOPBACK}:{server.port}/{name}", whole


def emptied(folder: Path) -> Path:
    """A folder with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
