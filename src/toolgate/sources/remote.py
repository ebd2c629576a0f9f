"""What definitions that come over a wire or out of a table may ask for.

A module name or a command line in a definition is code that will run here. It is taken only from
files on this machine, which belong to the operator.
"""

from collections.abc import Iterable

from toolgate.errors import InvalidSpecs
from toolgate.spec.problem import Problem
from toolgate.spec.tool import ToolSpec

LOCAL_ONLY = frozenset({"python", "shell"})


def data_only(specs: Iterable[ToolSpec], *, file: str) -> list[ToolSpec]:
    """The specs, if none of them names code to run on this machine."""
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
        if spec.provider in LOCAL_ONLY and "builtin" not in spec.config.value()
    ]
    if problems:
        raise InvalidSpecs(problems)
    return kept
