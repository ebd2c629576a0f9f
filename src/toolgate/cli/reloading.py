"""`toolgate serve --reload`: a server that follows its files while somebody writes them.

The next server starts beside the one that runs, on the same socket; only when it takes requests is
the other one told to end, with what it has begun. One that does not start leaves all as it was.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from toolgate import configuration
from toolgate.cli import show
from toolgate.cli.session import load
from toolgate.cli.watched import Stamps, broken, changed, shown, stamps
from toolgate.errors import ToolgateError

_EVERY = 0.25
_MOST_START = 60.0
# What a folder of ours holds comes last, as in any other start: nothing of it hides a library.
_COMMAND = (sys.executable, "-P", "-c", "from toolgate.cli.main import main; main()", "serve")


class Reloading:
    """Watches, and puts one server in the place of another."""

    def __init__(self, config: Path | None, listening: socket.socket, *, json: bool) -> None:
        self._file = config or Path(configuration.FILE)
        self._config = config
        self._settings = load(config)
        self._listening = listening
        self._json = json
        self._child: _Child | None = None
        self._ending: list[_Child] = []
        self._told = threading.Event()

    def run(self) -> int:
        """Until a signal; the exit code of the server that ran last."""
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, self._hear)
        seen = stamps(self._file, self._settings)
        self._child = self._started(["--json"] if self._json else [])
        if self._child is None:
            return 1
        while not self._told.wait(_EVERY):
            self._ending = [one for one in self._ending if one.runs]
            now = self._settled(seen)
            if now is not seen:
                before = self._settings
                self._renew(changed(seen, now))
                # What was written meanwhile is still to be seen; what is new to be watched is not.
                if self._settings != before:
                    now = stamps(self._file, self._settings) | now
                seen = now
        for child in (self._child, *self._ending):
            child.wait()
        return self._child.code

    def _hear(self, number: int, _frame: object) -> None:
        self._told.set()
        for child in (*([self._child] if self._child else []), *self._ending):
            child.tell(signal.Signals(number))

    def _settled(self, seen: Stamps) -> Stamps:
        """What is there now, once nobody writes any more; `seen` where that is the same."""
        now = stamps(self._file, self._settings)
        if not changed(seen, now):
            return seen
        while not self._told.wait(_EVERY):
            last, now = now, stamps(self._file, self._settings)
            if not changed(last, now):
                break
        return now

    def _renew(self, files: list[Path]) -> None:
        root = self._settings.root
        named = ", ".join(shown(path, root) for path in files[:3]) + ("…" if files[3:] else "")
        problems = broken(files, root)
        with contextlib.suppress(ToolgateError):
            # What is wrong with them the next server says itself.
            self._settings = load(self._config)
        child = None if problems else self._started(["--again"])
        for problem in problems:
            _say(problem)
        if child is None:
            if not self._told.is_set():
                _say(f"{named} changed, and the server goes on as it was: mend that and save.")
            return
        if self._child is not None:
            self._child.tell(signal.SIGTERM)
            self._ending.append(self._child)
        self._child = child
        if self._told.is_set():
            child.tell(signal.SIGTERM)
        _say(f"{named} changed: the server was started anew.")

    def _started(self, more: Sequence[str]) -> "_Child | None":
        config = ["--config", str(self._config)] if self._config else []
        child = _Child([*_COMMAND, *config, *more], self._listening)
        return child if child.is_ready() else None


class _Child:
    """One server. It ends with whoever started it, however that ends."""

    def __init__(self, command: list[str], listening: socket.socket) -> None:
        self._ready, theirs = os.pipe()
        passed = (listening.fileno(), theirs)
        given = ["--inherit", str(listening.fileno()), "--ready", str(theirs)]
        try:
            self._process = subprocess.Popen(  # noqa: S603  this very program
                [*command, *given],
                stdin=subprocess.PIPE,
                pass_fds=passed,
                # A terminal's Ctrl-C is for whoever watches, and is handed on once.
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int:
        return max(self._process.returncode or 0, 0)

    def is_ready(self) -> bool:
        """Whether it takes requests; it has ended where it does not."""
        able, _, _ = select.select([self._ready], [], [], _MOST_START)
        said = os.read(self._ready, 1) if able else b""
        os.close(self._ready)
        if not said:
            self._process.kill()
            self._process.wait()
        return bool(said)

    def tell(self, number: signal.Signals) -> None:
        if self.runs:
            self._process.send_signal(number)

    def wait(self) -> None:
        self._process.wait()


def _say(text: str) -> None:
    show.aside(text)
    sys.stderr.flush()
    show.flush()
