"""Programs of ours that run in the sandbox, beside callers' code. Here they are only text."""

from functools import cache
from pathlib import Path

_HOME = Path(__file__).parent / "inside"


@cache
def script(name: str) -> str:
    """What a Python in the sandbox is to run."""
    return (_HOME / f"{name}.py.txt").read_text("utf-8")
