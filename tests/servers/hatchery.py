"""Where servers hatch: a process that has read all of toolgate, and forks one for each message.

A server that is started anew reads the code for most of a second, and tests start hundreds. What is
hatched runs the same command from its first line on; a start from nothing has tests of its own.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any

from tests.servers.leash import dies_with

_ROOT = Path(__file__).resolve().parents[2]
_LARGEST = 1 << 20
# With what they need for a store and a cache elsewhere, which are extras.
_READ = ("toolgate.cli.serve", "toolgate.store.postgres", "toolgate.store.redis")
_alone = Lock()
# As `python -c` has it: modules are found in the folder that the server works in.
_HERE = f"""\
import sys
sys.path.append({str(_ROOT)!r})
from tests.servers.hatchery import hatch
from toolgate.cli.main import main
hatch(int(sys.argv[1]))
sys.path.remove({str(_ROOT)!r})
main()
"""


class Hatched:
    """The test's side of one: what tests ask of a process that they have started."""

    def __init__(self, keeper: socket.socket, stdout: IO[bytes]) -> None:
        self._keeper = keeper
        self.stdout = stdout
        self.pid = int(keeper.recv(64))
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self.returncode = int(self._keeper.recv(64) or -signal.SIGKILL)
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired("hatched", timeout or 0) from None
            self._keeper.close()
        return self.returncode


def hatched(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stderr: IO[bytes]
) -> Hatched:
    """A `toolgate` with these arguments, in that folder, with nothing to read."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    out, written = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    given = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
    handed = [nothing, written, stderr.fileno(), theirs.fileno()]
    with _alone:
        socket.send_fds(_hatchery(), [json.dumps(given).encode()], handed)
    theirs.close()
    os.close(written)
    os.close(nothing)
    return Hatched(ours, os.fdopen(out, "rb"))


@cache
def _hatchery() -> socket.socket:
    """One for each pytest process, whose end it hears of: nobody speaks to it any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
    command = [sys.executable, "-c", _HERE, str(theirs.fileno())]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def hatch(number: int) -> None:
    """Read the code, then come back once in every process that is forked."""
    for one in _READ:
        with suppress(ImportError):
            import_module(one)
    with socket.socket(fileno=number) as asked:
        # Nobody asks how a keeper ended.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            message, handed, _flags, _where = socket.recv_fds(asked, _LARGEST, 4)
            if not message:
                os._exit(0)
            if os.fork() == 0:
                asked.close()
                _keep(handed.pop())
                return _come_out(json.loads(message), handed)
            for one in handed:
                os.close(one)


def _keep(number: int) -> None:
    """Stay behind as the one that waits for it and says how it ended."""
    dies_with(os.getppid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    me = os.getpid()
    with socket.socket(fileno=number) as told:
        pid = os.fork()
        if pid == 0:
            told.close()
            return dies_with(me)
        told.send(str(pid).encode())
        _pid, status = os.waitpid(pid, 0)
        told.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)


def _come_out(given: Mapping[str, Any], handed: Sequence[int]) -> None:
    """What a process is given when it starts."""
    for place, one in enumerate(handed):
        os.dup2(one, place)
        os.close(one)
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    sys.argv = ["-c", *given["arguments"]]
