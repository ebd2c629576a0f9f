"""The table of built-in tools: what each is, as data; what runs it is loaded when it is called.

The tool `echo` of the category `executor` is the file `executor/echo.json` and the function `echo`
of the module beside it.
"""

import importlib
import importlib.util
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

Function = Callable[..., Coroutine[Any, Any, Any]]
_PACKAGE = "toolgate.tools"
_HOME = Path(__file__).parent


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that an example takes for granted.

    `gives`: which arguments of the example are which part of its answer, such as `files.0.path`.
    """

    tool: str
    args: dict[str, Any]
    gives: dict[str, str] = {}

    def given(self, answer: Any) -> dict[str, Any]:
        """Those arguments."""
        return {name: _part(answer, path.split(".")) for name, path in self.gives.items()}


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that shows what a tool is for."""

    args: dict[str, Any]
    title: str = ""
    before: tuple[Step, ...] = ()


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool: its definition, the system that it belongs to, and what it cannot do without.

    `needs` are modules, which `extra` installs. `runs_programs`: it needs a sandbox, too.
    """

    definition: dict[str, Any]
    source: str
    examples: tuple[Example, ...] = ()
    needs: tuple[str, ...] = ()
    extra: str = ""
    runs_programs: bool = False

    @property
    def name(self) -> str:
        """As it is called."""
        return self.definition["name"]

    @property
    def category(self) -> str:
        """What it has to do with."""
        return self.definition["category"]

    @property
    def seed(self) -> dict[str, Any]:
        """The definition that a store begins with, with examples where schemas have them."""
        if not self.examples:
            return self.definition
        schema = {
            **self.definition["input_schema"],
            "examples": [one.args for one in self.examples],
        }
        return {**self.definition, "input_schema": schema}

    def lack(self) -> str | None:
        """What is missing here, and how to get it; or nothing."""
        if not _is_installed(self._module):
            return "its implementation is not part of this version"
        missing = [name for name in self.needs if not _is_installed(name)]
        if not missing:
            return None
        return f"it needs {', '.join(missing)}; install it with: make install EXTRAS={self.extra}"

    def function(self) -> Function:
        """What runs it; its module is loaded at the first call."""
        return getattr(importlib.import_module(self._module), self.name)

    @property
    def _module(self) -> str:
        return f"{_PACKAGE}.{self.category}.{self.name}"


@cache
def table() -> Mapping[str, Row]:
    """Every built-in tool, by name."""
    decoder = msgspec.json.Decoder(Row)
    folders = sorted(_HOME.iterdir(), key=lambda one: one.name)
    found = [
        decoder.decode(one.read_bytes())
        for folder in folders
        if folder.is_dir()
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if one.name.endswith(".json")
    ]
    return MappingProxyType({row.name: row for row in found})


def _part(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value[int(name) if name.isdigit() else name]
    return value


@cache
def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
