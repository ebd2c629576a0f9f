"""A process of ours, with all that it started: it ends as one, and nothing of it is left."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from toolgate.sandbox.cgroup import Group
from toolgate.sandbox.pipes import Descriptors

_AGAIN_SECONDS = 0.02
_MOST_AGAIN = 250
_LAST_SECONDS = 10.0


class Child:
    """Started already. Whoever holds it ends it; where the loop is, its end is noticed."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        group: Group | None,
        *,
        is_whole: bool = False,
        afterwards: Callable[[], "Child"] | None = None,
    ) -> None:
        """`group` is removed when the process is over. `is_whole`: all of it belongs to the group,
        and is ended with it, for want of a first process inside. `afterwards`: starts another that
        ends what this one has asked somebody else to start; before that, it is not over."""
        self._afterwards = afterwards
        self._is_whole = is_whole
        self._process = process
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int] = self._loop.create_future()
        self._inside = -1
        self._first = 0
        self._at_kill: Callable[[], None] | None = None
        self._at_end: list[Callable[[], None]] = []
        # Whether it was ended from here.
        self.was_ended = False
        self.ran_out_of_memory = False
        self._seen = os.pidfd_open(process.pid)
        self._loop.add_reader(self._seen, self._notice)

    @property
    def pid(self) -> int:
        return self._process.pid

    def inside(self, pid: int) -> None:
        """The first process inside: the kernel ends all others with it."""
        if self._process.returncode is not None:
            return
        self._inside = os.pidfd_open(pid)
        self._first = pid

    def check_inside(self) -> None:
        """`ProcessLookupError` where that is no more, and its number may be another's."""
        signal.pidfd_send_signal(self._inside, 0)

    def at_kill(self, do: Callable[[], None]) -> None:
        """Do this before it is ended from here: to learn which process is the first inside."""
        self._at_kill = do

    def at_end(self, do: Callable[[], None]) -> None:
        """Do this when it is over, once."""
        self._at_end.append(do)

    async def over(self) -> int:
        """Its exit code, once it is over. To stop waiting does not end it."""
        return await asyncio.shield(self._over)

    @property
    def is_over(self) -> bool:
        return self._over.done()

    def ask(self) -> None:
        """Ask what runs to end; what it started and left to itself is not asked."""
        first = self._first or self._process.pid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Not the first process itself, to which the kernel gives no such word: its session.
            os.killpg(first, signal.SIGTERM)

    def kill(self) -> None:
        """End it and all that it started. It may be called again."""
        if self._process.returncode is not None:
            return
        self.was_ended = True
        if self._inside < 0 and self._at_kill is not None:
            self._at_kill()
        if self._inside >= 0:
            # All inside are gone before it is; the one outside then ends by itself.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inside, signal.SIGKILL)
            # Unless somebody has stopped it.
            self._process.send_signal(signal.SIGCONT)
            return
        # What is being started has no first process yet, but is in the session of the one outside.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._empty()

    def _empty(self) -> None:
        """End whoever is in the group, until nobody is: some may be starting others."""
        if self._group is None or not self._is_whole:
            return
        for _ in range(_MOST_AGAIN):
            members = self._group.members()
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not members:
                return

    def _notice(self) -> None:
        code = self._process.poll()
        if code is None:
            return
        self._loop.remove_reader(self._seen)
        os.close(self._seen)
        if self._inside >= 0:
            os.close(self._inside)
            self._inside = -1
        self._empty()
        if self._group is not None:
            # One that ended well is not asked what it met on its way.
            self.ran_out_of_memory = code != 0 and self._group.ran_out
            self._remove(self._group)
        for do in self._at_end:
            do()
        if self._afterwards is None:
            self._over.set_result(code)
            return
        try:
            last = self._afterwards()
        except OSError:
            self._over.set_result(code)
            return
        last.at_end(lambda: self._over.set_result(code))
        self._loop.call_later(_LAST_SECONDS, last.kill)

    def _remove(self, group: Group, again: int = 0) -> None:
        # The kernel takes a moment to forget who was in it.
        if not group.remove() and again < _MOST_AGAIN and not self._loop.is_closed():
            self._loop.call_later(_AGAIN_SECONDS, self._remove, group, again + 1)


def spawned(
    argv: Sequence[str],
    *,
    streams: tuple[int, int, int],
    given: Sequence[int],
    group: Group | None = None,
    is_whole: bool = False,
    env: Mapping[str, str] | None = None,
    afterwards: Sequence[str] = (),
) -> Child:
    """Start a program in a session of its own, with these descriptors and this environment.

    It is in its group before it can have started anything. `afterwards`: a command that ends what
    it has asked somebody else to start.
    """
    stdin, stdout, stderr = streams
    try:
        # It does not block for long: no thread, and no copy of this process, is made for it.
        process = subprocess.Popen(  # noqa: S603 - an argument list, and no shell
            argv if group is None else [*group.joining(), *argv],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env or {},
            cwd="/",
            pass_fds=given,
            close_fds=True,
            start_new_session=True,
        )
    except OSError:
        if group is not None:
            group.remove()
        raise
    ending = partial(_quietly, afterwards, env) if afterwards else None
    return Child(process, group, is_whole=is_whole, afterwards=ending)


def _quietly(argv: Sequence[str], env: Mapping[str, str] | None) -> Child:
    with Descriptors() as opened:
        nothing = opened.keep(os.open(os.devnull, os.O_RDWR))
        return spawned(argv, streams=(nothing, nothing, nothing), given=(), env=env)
