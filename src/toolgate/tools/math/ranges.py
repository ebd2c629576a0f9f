"""Sets of numbers that solve something: as intervals, and in the notation of mathematics.

Needs SymPy, so that only workers import this.
"""

from typing import Any

from toolgate.tools.math.symbols import sympy
from toolgate.tools.math.writing import LONGEST, written


def notation(found: Any) -> str | None:
    """Such as `(-oo, -2] U {0} U (3, oo)`; nothing where it would be too long to read."""
    if isinstance(found, sympy.Union):
        parts = [notation(one) for one in found.args]
        text = " U ".join(one or "" for one in parts) if all(parts) else ""
    elif isinstance(found, sympy.Interval):
        left, right = "(" if found.left_open else "[", ")" if found.right_open else "]"
        text = f"{left}{written(found.start)}, {written(found.end)}{right}"
    elif isinstance(found, sympy.FiniteSet):
        text = "{" + ", ".join(written(one) or "" for one in found) + "}"
    elif found is sympy.S.EmptySet:
        text = "{}"
    elif isinstance(found, sympy.ImageSet):
        text = _image(found)
    else:
        text = _NAMED.get(found) or written(found) or ""
    return text if 0 < len(text) <= LONGEST else None


def intervals(found: Any) -> list[dict[str, Any]] | None:
    """Each as its two ends, with whether they belong to it; nothing for other kinds of sets."""
    parts = found.args if isinstance(found, sympy.Union) else (found,)
    listed: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, sympy.FiniteSet):
            listed += [_interval(one, one, [True, True]) for one in part]
        elif isinstance(part, sympy.Interval):
            ends = [not part.left_open, not part.right_open]
            listed.append(_interval(part.start, part.end, ends))
        elif part is not sympy.S.EmptySet:
            return None
    return listed


def _interval(start: Any, end: Any, included: list[bool]) -> dict[str, Any]:
    return {"from": written(start), "to": written(end), "included": [bool(one) for one in included]}


def _image(found: Any) -> str:
    """`{2*n*pi, n whole}`."""
    variables = found.lamda.variables
    renamed = {one: sympy.Symbol("nmkl"[at % 4]) for at, one in enumerate(variables)}
    names = ", ".join(str(one) for one in renamed.values())
    return "{" + f"{written(found.lamda.expr.subs(renamed))}, {names} whole" + "}"


_NAMED: dict[Any, str] = {
    sympy.S.Reals: "all real numbers",
    sympy.S.Complexes: "all complex numbers",
    sympy.S.Integers: "all whole numbers",
}
