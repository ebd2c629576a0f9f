"""The built-in tools: the default catalog as data, and the functions that exist so far.

A spec whose function is not here is shown as such and cannot be called.
"""

from collections.abc import Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from toolgate.ledger.outputs import Outputs
from toolgate.tools.executor.echo import echo
from toolgate.tools.executor.read_output import May, read_output
from toolgate.tools.executor.timestamp import timestamp

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "echo": echo,
        "timestamp": timestamp,
    }
)


# Those that this version can run.
IMPLEMENTED = frozenset({*FUNCTIONS, "read_output"})


def functions(outputs: Outputs, may: May | None = None) -> Mapping[str, Callable[..., Any]]:
    """All of them, with those that stand on a part of the house."""
    return MappingProxyType({**FUNCTIONS, "read_output": read_output(outputs, may)})


class Seed(NamedTuple):
    """A row of the default catalog: its definition, and the system that it belongs to."""

    definition: Mapping[str, Any]
    source: str


def default_catalog() -> list[Seed]:
    """The specs that a new store starts with."""
    raw = files("toolgate.tools").joinpath("default_catalog.json").read_bytes()
    return [Seed(row["definition"], row["source"]) for row in orjson.loads(raw)]
