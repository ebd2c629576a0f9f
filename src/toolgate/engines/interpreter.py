"""The in-process Rego interpreter, with errors that can be shown.

An engine belongs to the thread that made it, holds the interpreter lock while it works, and has no
timer: what it is given is bounded before it gets here.
"""

import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

# Read at the first error, also at those that only mean "undefined": a stack trace for each of them
# makes every decision four times as slow.
os.environ.setdefault("RUST_LIB_BACKTRACE", "0")

from regorus import Engine

_PLACE = re.compile(r"^--> (?P<file>.*):(?P<line>\d+):(?P<column>\d+)$", re.MULTILINE)
_ERROR = re.compile(r"^error: (?P<message>.+)$", re.MULTILINE)
_LONGEST = 300


class _Waste(threading.local):
    """Engines that nobody uses any more, in the thread that made them."""

    def __init__(self) -> None:
        self.engines: deque[Any] = deque()


_waste = _Waste()


class RegoError(Exception):
    """What the interpreter says is wrong, as `file:line: message` where it knows the place."""


class Interpreter:
    """One engine with modules and data."""

    def __init__(self) -> None:
        # Only its own thread may let an engine go, and garbage is collected on any: what is not
        # used any more is put aside, and let go when its thread comes by here again.
        _waste.engines.clear()
        self._engine = Engine()
        weakref.finalize(self, _waste.engines.append, self._engine).atexit = False

    def add_module(self, file: str, text: str) -> None:
        """Read a module."""
        _told(self._engine.add_policy, file, text)

    def set_data(self, data: Mapping[str, Any]) -> None:
        """Put these documents in the place of all that are there."""
        _told(self._engine.clear_data)
        _told(self._engine.add_data_json, orjson.dumps(data).decode())

    def syntax(self) -> list[dict[str, Any]]:
        """The syntax tree of every module."""
        try:
            return orjson.loads(_told(self._engine.get_ast_as_json))
        except ValueError:
            raise RecursionError("the tree is deeper than can be read") from None

    def ask(self, rule: str, document: bytes) -> Any:
        """The value of a rule for this `input`, as JSON; `None` where it is undefined."""
        try:
            self._engine.set_input_json(document.decode())
            return self._engine.eval_rule(rule)
        except BaseException as error:  # noqa: BLE001  a panic of the engine is no Exception
            raise _told_of(error) from None


def _told(act: Any, *given: str) -> Any:
    try:
        return act(*given)
    except BaseException as error:  # noqa: BLE001  a panic of the engine is no Exception
        raise _told_of(error) from None


def _told_of(error: BaseException) -> BaseException:
    """Anything that is not the engine's own stays what it is."""
    if not isinstance(error, RuntimeError) and type(error).__name__ != "PanicException":
        return error
    text = str(error).partition("Stack backtrace")[0].strip()
    place, said = _PLACE.search(text), _ERROR.search(text)
    message = said["message"] if said else text.partition("\n")[0] or "it cannot be evaluated"
    message = message[:_LONGEST]
    return RegoError(f"{place['file']}:{place['line']}: {message}" if place else message)
