"""`symbolic_solve`: what solves equations and inequalities, exactly where that is possible."""

from collections.abc import Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.math.expression import Equation, is_constant, parse_equation
from toolgate.tools.math.names import check_names
from toolgate.tools.math.vocabulary import suggestion
from toolgate.tools.means import Means

SECONDS = 10.0
_SOLVE = "toolgate.tools.math.solving:solve"
_IMAGINARY = "I"


async def symbolic_solve(
    means: Means,
    _call: Call,
    *,
    equations: str | list[str],
    variables: list[str] | None = None,
    domain: str = "complex",
) -> dict[str, Any]:
    """Solve equations for unknowns.

    Args:
        equations: one, or several that hold together
        variables: the unknowns; other names are parameters
        domain: complex or real numbers
    """
    texts = [equations] if isinstance(equations, str) else equations
    problem = _read(texts)
    unknowns = _unknowns(problem, variables)
    args = {"equations": texts, "variables": unknowns, "domain": domain}
    return await means.workers.run(_SOLVE, args, seconds=SECONDS)


def _read(texts: Sequence[str]) -> list[Equation]:
    found: list[Equation] = []
    for number, text in enumerate(texts, 1):
        try:
            found.append(parse_equation(text))
        except ToolError as error:
            which = f"Equation {number}: " if len(texts) > 1 else ""
            raise ToolError(which + error.message) from None
    return found


def _unknowns(problem: Sequence[Equation], variables: Sequence[str] | None) -> list[str]:
    """Those that are asked for; else every name, where there are not too many to be solved for."""
    used = list(dict.fromkeys(one.name for equation in problem for one in equation.used))
    names = [name for name in used if not is_constant(name) and name != _IMAGINARY]
    if variables:
        check_names(variables)
        for name in variables:
            if name not in used:
                raise ToolError(
                    f'"{name}" is in no equation; there are {_listed(names)}.'
                    f"{suggestion(name, names)}"
                )
        return list(dict.fromkeys(variables))
    if not names:
        raise ToolError("There is no unknown to solve for. Use calculate to compute or compare.")
    if len(names) > len(problem):
        raise ToolError(
            f"There are {len(names)} names for {len(problem)} equation"
            f"{'s' if len(problem) > 1 else ''}: {_listed(names)}. Say in variables which of them "
            f'are unknown, such as ["{names[0]}"].'
        )
    return names


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no names in them"
