"""A real server as a child process on a free loopback port, with a folder for its data.

`with` makes the folder, starts the server and waits until it answers; at its end the server is
stopped and the folder removed. In between, `stop()` and `start()` are an outage: same port, same
folder.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from secrets import randbelow
from types import TracebackType
from typing import ClassVar, Self

from tests.servers.leash import leashed
from tests.servers.listener import listens

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"
START_SECONDS = 40.0
STOP_SECONDS = 10.0


class AbsentError(Exception):
    """The server is not on this machine; the message says which, and what to do."""


class StartError(Exception):
    """The server did not become ready; the message ends with the tail of its log."""


def services() -> Path:
    return Path(os.environ.get("TOOLGATE_SERVICES") or ROOT / ".services").absolute()


def absent(name: str) -> AbsentError:
    return AbsentError(f"no {name} (run make services)")


def free_port() -> int:
    # Below the range that the kernel gives to outgoing connections, so that none of them can take
    # the port between this look and the server's bind.
    while True:
        port = 20_000 + randbelow(12_000)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port


class Process(ABC):
    """One server; each kind says what to run and how to ask whether it is ready."""

    farewell: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = free_port()
        self.folder = Path()
        self._child: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]: ...

    @abstractmethod
    def is_ready(self) -> bool:
        """Asks the server itself; an OSError means not yet."""

    def prepare(self) -> None:  # noqa: B027 - most kinds need nothing
        """Fills the folder before the first start."""

    @property
    def uid(self) -> int:
        return os.getuid()

    @property
    def pid(self) -> int:
        if self._child is None:
            raise StartError(f"{self.name} is not running")
        return self._child.pid

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                leashed(self.command(), uid=self.uid),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Out of reach of the terminal's Ctrl-C, which is for pytest to act on.
                start_new_session=True,
            )
        self._wait(self._child)

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.send_signal(self.farewell)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"toolgate-{self.name.lower()}-"))
        try:
            self.prepare()
            self.start()
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
        self._end()

    def _end(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while child.poll() is None:
            try:
                if self.is_ready() and listens(child.pid, self.port):
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise self._failed(f"was not ready after {START_SECONDS:.0f} s")
            time.sleep(0.01)
        raise self._failed(f"ended with {child.returncode} before it was ready")

    def _failed(self, what: str) -> StartError:
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
        return StartError(f"{self.name} {what}; its log ends:\n{tail}")
