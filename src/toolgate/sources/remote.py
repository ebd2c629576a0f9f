"""What definitions that come over a wire or out of a table may ask for.

A module name or a command line in a definition is code that will run here. It is taken only from
files on this machine, which belong to the operator.
"""

from collections.abc import Iterable

from toolgate.errors import InvalidSpecs
from toolgate.spec.problem import Problem
from toolgate.spec.reader import MAX_PROBLEMS
from toolgate.spec.tool import ToolSpec

LOCAL_ONLY = frozenset({"builtin", "python", "shell", "mcp"})


def data_only(specs: Iterable[ToolSpec], *, file: str, builtin: bool = False) -> list[ToolSpec]:
    """The specs, if none of them names code to run on this machine.

    `builtin` lets through what names a built-in tool. Over a wire that would be a way to give one
    a new name, and a policy that asks nobody.
    """
    kept = list(specs)
    problems = [
        Problem(
            file=file,
            tool=spec.name,
            field="provider",
            message=f"is {spec.provider}, which runs code on this machine",
            write="Define it in a tool file here, or use a provider that calls a service.",
        )
        for spec in kept
        if spec.provider in LOCAL_ONLY and not (builtin and names_builtin(spec))
    ]
    if problems:
        raise InvalidSpecs(problems[:MAX_PROBLEMS])
    return kept


def names_builtin(spec: ToolSpec) -> bool:
    """Whether its implementation is one of ours."""
    return "builtin" in spec.config.value()
