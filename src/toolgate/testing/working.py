"""Functions for tests of what computes in processes of its own."""

import os
import time
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


def surroundings() -> dict[str, Any]:
    """Who it is, and which of the environment it sees."""
    return {"pid": os.getpid(), "environment": sorted(os.environ)}
