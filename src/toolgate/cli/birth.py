"""How a server comes to be: by itself, or beside another one that it is to replace."""

import asyncio
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from toolgate.bootstrap import Toolgate
from toolgate.errors import InvalidSpecs


class Birth:
    """`ready` is where somebody waits for word that requests are taken; `is_again`: not the first.

    Whoever waits there also holds the other end of the input: when that is closed, they are gone.
    """

    def __init__(self, ready: int | None = None, *, is_again: bool = False) -> None:
        self._ready = ready
        self._is_again = is_again

    def greeting(self, greet: Callable[[], None]) -> Callable[[], None]:
        """What to do when requests are taken."""

        def born() -> None:
            if not self._is_again:
                greet()
            if self._ready is not None:
                os.write(self._ready, b"1")
                os.close(self._ready)

        return born

    def check(self, gate: Toolgate, root: Path) -> None:
        """`InvalidSpecs` where a module of this folder breaks: the one before may have had it."""
        if self._is_again and (problems := _broken_modules(gate, root)):
            raise InvalidSpecs(problems)

    def follow(self, finish: Callable[[], None]) -> None:
        """End with whoever started this."""
        if self._ready is None:
            return
        loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

        def read() -> None:
            with contextlib.suppress(OSError):
                if os.read(stdin, 1_024):
                    return
            loop.remove_reader(stdin)
            finish()

        loop.add_reader(stdin, read)


def _broken_modules(gate: Toolgate, root: Path) -> list[str]:
    """Where a module that a tool names stops being loaded, by file and line."""
    snapshot = gate.catalog.current
    found: dict[str, None] = {}
    for name in snapshot.unusable:
        module = snapshot.specs[name].config.value().get("module")
        if isinstance(module, str):
            found |= dict.fromkeys(_why(module, root))
    return list(found)


def _why(module: str, root: Path) -> list[str]:
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  a module can raise anything
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            # What is not there at all is told as in any other start.
            if Path(frame.filename).is_relative_to(root.absolute()):
                place = f"{os.path.relpath(frame.filename, root)}:{frame.lineno}"
                return [f"{place}: {type(error).__name__}: {error}"]
    return []
