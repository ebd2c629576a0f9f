"""A folder with queued tools, topics of its own, and real `toolgate worker` processes in it.

Tools leave marks in one file, which tests believe before any answer.
"""

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from tests.blank import put_blank
from tests.house import STORE
from tests.server.serving import COMMAND
from tests.servers.hatchery import Hatched, hatched
from toolgate import Toolgate
from toolgate.configuration import load
from toolgate.queue.queue import Kept
from toolgate.settings.settings import Settings

MODULE = '''\
"""Tools that leave marks, and that wait until they are let go."""

import asyncio
import os
from pathlib import Path

from toolgate import ToolError

HERE = Path("{here}")


def leave(text):
    with (HERE / "marks").open("ab") as file:
        file.write(f"{{text}} {{os.getpid()}}\\n".encode())


async def mark(text: str, account: str = "") -> dict:
    leave(text)
    return {{"marked": text}}


async def slow(text: str, account: str = "") -> dict:
    await asyncio.sleep(0.2)
    leave(text)
    return {{"marked": text}}


async def refuse(text: str, account: str = "") -> dict:
    leave(text)
    raise ToolError("The far side says no.")


async def held(text: str, account: str = "") -> dict:
    leave(f"began-{{text}}")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    leave(text)
    return {{"marked": text}}
'''
_TEXT = "{type: object, properties: {text: {type: string}, account: {type: string}}}"


def _tool(name: str, function: str, effect: str, more: str = "") -> str:
    return f"""\
  - name: {name}
    config: {{module: MODULE, function: {function}}}
    execution: queued
    effect: {effect}
    input_schema: {_TEXT}
{more}"""


TOOLS = "tools:\n" + "".join(
    (
        _tool("look", "mark", "pure"),
        _tool("pay", "mark", "irreversible"),
        _tool("post", "mark", "irreversible", "    order_by: account\n"),
        _tool("held", "held", "idempotent"),
        _tool("watch", "held", "pure"),
        _tool("slow", "slow", "pure"),
        _tool("refuse", "refuse", "irreversible"),
    )
)


class Yard:
    """`address` may say how the brokers are spoken to; without one the store is the queue.

    `queue` is more of the section `[queue]`, in its own words.
    """

    def __init__(self, root: Path, address: str, queue: str = "", more: str = "") -> None:
        self.root = root
        self.name = uuid4().hex[:12]
        self._processes: list[Hatched | subprocess.Popen[bytes]] = []
        self._log = (root / "worker.log").open("ab")
        (root / "marks").touch()
        (root / "tools").mkdir()
        # A name of its own: what a process has imported once it does not read again.
        module = f"yard_{self.name}"
        (root / "tools" / "yard.yaml").write_text(TOOLS.replace("MODULE", module), "utf-8")
        (root / f"{module}.py").write_text(MODULE.format(here=root), "utf-8")
        spoken = address if not address or "://" in address else f"kafka://{address}"
        (root / "toolgate.toml").write_text(
            f"""
[tools]
builtin = ["echo"]

[toolbox]
lease = 2

[queue]
url = "{spoken}"
group = "{self.name}"
lease = 2
{queue}

[queue.topics]
requests = "{self.requests}"
results = "{self.results}"
dead = "{self.dead}"
partitions = 4
{more}
""",
            "utf-8",
        )
        put_blank(root / STORE)

    @property
    def requests(self) -> str:
        return f"{self.name}.requests"

    @property
    def results(self) -> str:
        return f"{self.name}.results"

    @property
    def dead(self) -> str:
        return f"{self.name}.dead"

    def change(self, old: str, new: str) -> None:
        """Other settings, for all that are started from now on."""
        file = self.root / "toolgate.toml"
        file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")

    def settings(self, **queue: Any) -> Settings:
        found = load(self.root / "toolgate.toml")
        return found.model_copy(update={"queue": found.queue.model_copy(update=queue)})

    def gate(self, **queue: Any) -> AbstractAsyncContextManager[Toolgate]:
        """A node in this process."""
        return Toolgate.open(self.settings(**queue))

    def worker(self, *more: str) -> Hatched:
        """A worker that is ready."""
        process = hatched(["worker", *more], cwd=self.root, env=os.environ, stderr=self._log)
        self._processes.append(process)
        assert process.stdout.readline(), self.log
        return process

    def command(self, *words: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Any command, started from nothing: only so it hears where it is to crash."""
        process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.root,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._processes.append(process)
        return process

    @property
    def log(self) -> str:
        return (self.root / "worker.log").read_text("utf-8")

    def marks(self) -> Mapping[str, int]:
        """How often each effect happened, in whichever process."""
        return Counter(line.split()[0] for line in self._lines())

    def order(self) -> list[str]:
        return [line.split()[0] for line in self._lines()]

    def hands(self) -> set[str]:
        """The processes that left marks."""
        return {line.split()[1] for line in self._lines()}

    def go(self) -> None:
        """Let those that are held go on."""
        (self.root / "go").touch()

    def _lines(self) -> list[str]:
        return (self.root / "marks").read_text("utf-8").splitlines()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._log.close()


async def over(gate: Toolgate, call_ids: Sequence[str], *, seconds: float = 60.0) -> Sequence[Kept]:
    """As soon as all of them have ended; the bound only ends a test that has failed."""
    async with asyncio.timeout(seconds):
        while len(found := await gate.queue.calls.over(call_ids)) < len(call_ids):  # noqa: ASYNC110  the store tells nobody
            await asyncio.sleep(0.05)
    return found
