"""The world outside: a process of its own in which effects happen, and which knows how often.

One line an effect, on the disk before it is answered. What this file says is the truth of every
test here; what the gate answers and records is measured by it.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.servers.leash import leashed
from tests.servers.process import LOOPBACK, free_port

ROOT = Path(__file__).resolve().parents[2]
Effect = dict[str, Any]


class World:
    """Does what it is asked. Who brings a downstream key is known by it, and served once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._numbers: dict[str, int] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._total = 0

    async def do(self, asked: Effect) -> Effect:
        tool, key, down = asked["tool"], asked["key"], asked.get("down", "")
        known = self._numbers.get(down) if down else None
        if known is not None:
            await self._write({**asked, "again": True})
            return {"number": known}
        self._total += 1
        number = self._total
        if down:
            self._numbers[down] = number
        self._counts[tool, key] += 1
        await self._write({**asked, "number": number})
        return {"number": number}

    def count(self, asked: Effect) -> Effect:
        return {"count": self._counts[asked["tool"], asked["key"]]}

    async def _write(self, line: Effect) -> None:
        """All that came in the meantime goes to the disk together."""
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._waiting.append((json.dumps(line).encode() + b"\n", written))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush)
        await written

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._file.write(b"".join(line for line, _ in waiting))
        os.fsync(self._file.fileno())
        for _, written in waiting:
            if not written.done():
                written.set_result(None)


async def serve(port: int, path: Path) -> None:
    world = World(path)
    answering: set[asyncio.Task[None]] = set()

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(line)
        told = world.count(asked) if asked["do"] == "count" else await world.do(asked)
        writer.write(json.dumps({"id": asked["id"], **told}).encode() + b"\n")

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                if line.endswith(b"\n"):
                    task = asyncio.create_task(answer(line, writer))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
        writer.close()

    server = await asyncio.start_server(meet, LOOPBACK, port)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await server.serve_forever()


class Recorder:
    """The test's view of it: the file."""

    def __init__(self, port: int, path: Path) -> None:
        self.port = port
        self.path = path

    def lines(self) -> list[Effect]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    def effects(self) -> list[Effect]:
        """What really happened, in its order; an attempt that was recognised did not."""
        return [line for line in self.lines() if not line.get("again")]

    def counts(self, tool: str) -> Counter[str]:
        return Counter(line["key"] for line in self.effects() if line["tool"] == tool)

    def numbers(self, tool: str) -> dict[str, int]:
        return {line["key"]: line["number"] for line in self.effects() if line["tool"] == tool}


@contextmanager
def recording(folder: Path) -> Generator[Recorder]:
    """A recorder that ends with the block."""
    port, path = free_port(), folder / "effects.jsonl"
    path.touch()
    command = [sys.executable, "-m", "tests.once.recorder", str(port), str(path)]
    with subprocess.Popen(
        leashed(command, uid=os.getuid()), cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            deadline = time.monotonic() + 20
            assert process.stdout.readline() == b"ready\n", "the recorder did not start"
            assert time.monotonic() < deadline
            yield Recorder(port, path)
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
