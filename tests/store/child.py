"""Another process at the same store: told what to do by lines, killed without warning."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.leash import leashed

ROOT = Path(__file__).resolve().parents[2]


class Child:
    """A Python program with which a test exchanges lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        """All it said, until it ended."""
        assert self._process.stdout is not None
        return self._process.stdout.read().splitlines()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def child(program: str, *arguments: str) -> Generator[Child]:
    """It ends with the block; what it says on stderr is shown by pytest."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        leashed(command, uid=os.getuid()),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()
