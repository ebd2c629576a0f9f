"""Functions for tests of what computes in processes of its own."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.working.parcel import Parcel


def echo(value: Any) -> Any:
    """What was given."""
    return value


def repeat(value: Any, by: int) -> list[Any]:
    """The same, often."""
    return [value] * by


def mirror(data: bytes, by: int) -> Parcel:
    """The same bytes, so many times."""
    return Parcel({"size": len(data)}, data * by)


def refuse(message: str) -> None:
    """A mistake of the caller's."""
    raise ToolError(message)


def fail() -> None:
    """A mistake of ours."""
    raise KeyError("inside")


def linger(seconds: float) -> None:
    """Take long."""
    time.sleep(seconds)


def grow(megabytes: int) -> int:
    """Take much."""
    return len(bytes(megabytes * 1024 * 1024))


def attempts(address: list[Any], outside: str, victim: int) -> dict[str, str]:
    """What comes of a worker's tries to get out."""
    tries: dict[str, Callable[[], object]] = {
        "network": lambda: socket.create_connection((address[0], address[1]), 5).close(),
        "program": lambda: subprocess.run(["/bin/true"], check=True),
        "process": lambda: os.fork() or os._exit(0),
        "signal": lambda: os.kill(victim, 0),
        "reading": lambda: Path(outside).read_text("utf-8"),
        "writing": lambda: Path(outside).write_text("changed", "utf-8"),
        "own folder": lambda: tempfile.NamedTemporaryFile().close(),
    }
    return {name: _tried(one) for name, one in tries.items()}


def _tried(one: Callable[[], object]) -> str:
    try:
        one()
    except OSError as error:
        return type(error).__name__
    return "done"


def surroundings() -> dict[str, Any]:
    """Who it is, and which of the environment it sees."""
    return {"pid": os.getpid(), "environment": sorted(os.environ)}


def unbound(data: bytes, folder: str) -> dict[str, bool]:  # noqa: ARG001  as what bounds it has
    """In place of what keeps a worker in: nothing does."""
    return {"files": False}
