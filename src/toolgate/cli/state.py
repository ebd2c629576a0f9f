"""A tool of the catalog as an operator meets it: found by name, on, off or unusable, and why."""

import difflib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from toolgate.bootstrap import Toolgate
from toolgate.errors import CallRefused
from toolgate.spec.tool import ToolSpec

STYLES: Mapping[str, str] = {"on": "green", "off": "yellow", "unusable": "red"}
# Comparing a name with every other one takes time; a hint is not worth more of it.
_MOST_COMPARED = 1_000


class NoSuchTool(CallRefused):
    """An operator may know what there is; a caller's refusal would not say."""

    code = "tool_not_found"


class State(NamedTuple):
    """On, off or unusable for everyone, and the reason where there is one to give."""

    word: str
    reason: str = ""


def state_of(gate: Toolgate, spec: ToolSpec) -> State:
    """How the tool stands for everyone."""
    reason = gate.catalog.current.unusable.get(spec.name)
    if reason is not None:
        return State("unusable", reason)
    flag = gate.tenancy.world.everyone.flags.get(spec.name)
    return State("on" if (spec.enabled if flag is None else flag) else "off")


def find(gate: Toolgate, name: str) -> ToolSpec:
    """The tool of this name, or `NoSuchTool` with the nearest one."""
    spec = gate.catalog.current.get(name)
    if spec is None:
        raise NoSuchTool(unknown(name, gate.catalog.current.specs))
    return spec


def unknown(name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not in the catalog."""
    shown = name if len(name) <= 64 else name[:64] + "…"
    close = difflib.get_close_matches(name[:128], islice(known, _MOST_COMPARED), n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "See which there are: toolgate tools list"
    return f"There is no tool {shown!r} in the catalog. {hint}"
