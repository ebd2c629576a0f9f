"""Sees what this process does that an expression never has to: code, files, programs, sockets."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_WATCHED = (
    "compile",
    "exec",
    "import",
    "open",
    "os.",
    "subprocess.",
    "socket.",
    "ctypes.",
    "code.",
)
_watching: list[list[str]] = []


def _hook(event: str, _args: tuple[Any, ...]) -> None:
    if _watching and event.startswith(_WATCHED):
        for seen in _watching:
            seen.append(event)


# A hook stays as long as the process; without anybody watching it does nothing.
sys.addaudithook(_hook)


@contextmanager
def watched() -> Generator[list[str]]:
    """What was done meanwhile, by name."""
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)
