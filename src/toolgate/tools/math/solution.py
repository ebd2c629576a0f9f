"""Solutions as they are told: exactly as a text, and as numbers where they are any.

Needs SymPy, so that only workers import this.
"""

import math
from collections.abc import Sequence
from typing import Any

from toolgate.tools.math.symbols import sympy
from toolgate.tools.math.writing import written

_MOST = 100
_DIGITS = 17
# An imaginary part of so little is what rounding leaves.
_ROUNDING = 1e-12
# How far off what is zero may come out, of the sizes of what is added up.
_OFF = 1e-9
_NOT_EXACT = "Where exact is null, there is no exact form that would be of use."


def answered(
    found: Sequence[dict[Any, Any]],
    unknowns: Sequence[Any],
    *,
    every: str | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Real solutions first, from the least up."""
    told = sorted(({str(name): _told(one[name]) for name in one} for one in found), key=_order)
    more = [*notes]
    if any(value["exact"] is None for one in told for value in one.values()):
        more.append(_NOT_EXACT)
    if not told and every is None and not notes:
        more.append("There is no solution.")
    is_exact = all(value["exact"] for one in told for value in one.values())
    method = "exact" if is_exact else "numeric"
    return _answer(told, [str(one) for one in unknowns], method, every, more)


def numbers(
    points: Sequence[Sequence[float]], names: Sequence[str], notes: Sequence[str]
) -> dict[str, Any]:
    """Those that a search has found."""
    told = [
        {name: {"exact": None, "numeric": value} for name, value in zip(names, one, strict=True)}
        for one in points
    ]
    return _answer(sorted(told, key=_order), list(names), "numeric", None, list(notes))


def _answer(
    told: list[dict[str, Any]], names: list[str], method: str, every: str | None, notes: list[str]
) -> dict[str, Any]:
    if len(told) > _MOST:
        notes.append(f"These are {_MOST} of {len(told)} solutions.")
    return {
        "solutions": told[:_MOST],
        "count": len(told),
        "variables": names,
        "method": method,
        "set": every,
        "notes": notes,
    }


def solving(sides: Sequence[Any], found: Sequence[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Those that do solve it: SymPy tells others too, where it changes the form of an equation."""
    return [one for one in found if all(_is_zero(side, one) for side in sides)]


def _is_zero(side: Any, at: dict[Any, Any]) -> bool:
    """Whether it is, up to rounding; also where that cannot be told."""
    parts = [part.subs(at) for part in sympy.Add.make_args(side)]
    if any(part.free_symbols for part in parts):
        return True
    values = [_number(part) for part in parts]
    known = [one for one in values if one is not None]
    if len(known) < len(values):
        return True
    return abs(sum(known)) <= _OFF * sum(abs(one) for one in known)


def is_real(value: Any) -> bool:
    """Whether a number is one, up to rounding."""
    number = _number(value)
    return number is not None and _is_real(number)


def _told(value: Any) -> dict[str, Any]:
    exact = None if value.has(sympy.Float) else written(value)
    found: dict[str, Any] = {"exact": exact, "numeric": None}
    number = None if value.free_symbols else _number(value)
    if number is None:
        return found
    if _is_real(number):
        return {**found, "numeric": number.real}
    return {**found, "complex": [number.real, number.imag]}


def _number(value: Any) -> complex | None:
    try:
        number = complex(sympy.N(value, _DIGITS))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number.real) and math.isfinite(number.imag) else None


def _is_real(number: complex) -> bool:
    return abs(number.imag) <= _ROUNDING * abs(number.real)


def _order(solution: dict[str, Any]) -> tuple[tuple[bool, float, float], ...]:
    return tuple(
        ("complex" in one, *one.get("complex", (one["numeric"] or 0.0, 0.0)))
        for one in solution.values()
    )
