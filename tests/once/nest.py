"""Where workers hatch: a process that has read all the code, and forks one for each line.

A worker that is started anew reads the code for most of a second; there are hundreds of them.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.once import worker
from tests.servers.leash import PR_SET_PDEATHSIG, leashed
from toolgate.store import migrate, postgres, sqlite

ROOT = Path(__file__).resolve().parents[2]
READ = (migrate, postgres, sqlite)


def hatch() -> None:
    # Nobody asks how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    nest = os.getpid()
    for line in sys.stdin:
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != nest:
                os._exit(1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            worker.main(json.loads(line))
            os._exit(0)


class Nest:
    """The test's side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def hatch(self, terms: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(terms) + "\n")
        self._process.stdin.flush()


@contextmanager
def nesting() -> Generator[Nest]:
    """All that hatched in it ends with it."""
    command = [sys.executable, "-m", "tests.once.nest"]
    with subprocess.Popen(
        leashed(command, uid=os.getuid()),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Nest(process)
        finally:
            process.kill()


if __name__ == "__main__":
    hatch()
