"""A leash: a program started on it dies with the process that started it, however that one ends.

A pytest that is killed outright (a job cancelled, a worker crashed) tears no fixture down, but the
kernel pulls the leash. It does so when the starting *thread* ends: start from one that lasts.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1


def leashed(command: Sequence[str], *, uid: int) -> list[str]:
    # This interpreter execs the command: the pid stays the same, and nothing runs between fork and
    # exec in a process that has threads, as a preexec_fn would.
    leash = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    return [*leash, str(os.getpid()), str(uid), *command]


def dies_with(parent: int) -> None:
    """From now on this process ends when the one that forked it does."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that holds the leash has already ended")


def _exec(parent: int, uid: int, command: list[str]) -> None:
    if uid != os.getuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    # After the change of user, which would undo it.
    dies_with(parent)
    os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted


if __name__ == "__main__":
    _exec(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
