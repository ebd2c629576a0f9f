"""What the functions of expressions mean for floats: by `math`, by numpy, and by numba.

Needs numpy, and numba where something is compiled, so that only workers import this.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _sign(x: float) -> float:
    return math.copysign(1.0, x) if x != 0.0 else 0.0


def _floor(x: float) -> float:
    return float(np.floor(x))


def _ceil(x: float) -> float:
    return float(np.ceil(x))


def _trunc(x: float) -> float:
    return float(np.trunc(x))


def _cbrt(x: float) -> float:
    return math.copysign(abs(x) ** (1.0 / 3.0), x)


def _factorial(x: float) -> float:
    return math.gamma(x + 1.0)


def _log2(x: float) -> float:
    return math.log(x) / math.log(2.0)


def _floored(x: float, y: float) -> float:
    return float(np.floor(x / y))


def _modulo(x: float, y: float) -> float:
    return x - y * float(np.floor(x / y))


def _least(x: float, y: float) -> float:
    return min(x, y)


def _most(x: float, y: float) -> float:
    return max(x, y)


def _rounded(x: float, places: float) -> float:
    scale = 10.0**places
    return float(np.rint(x * scale)) / scale


# Which the libraries have no single function for.
_OWN: dict[str, Function] = {
    "sign": _sign,
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "cbrt": _cbrt,
    "factorial": _factorial,
    "log2": _log2,
    "floored": _floored,
    "modulo": _modulo,
    "least": _least,
    "most": _most,
    "rounded": _rounded,
}
_MATH = (
    "sqrt",
    "exp",
    "expm1",
    "log1p",
    "log",
    "log10",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "degrees",
    "radians",
    "gamma",
    "lgamma",
    "erf",
    "erfc",
    "atan2",
)
_NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "power": "power",
    "floored": "floor_divide",
    "modulo": "mod",
    "least": "minimum",
    "most": "maximum",
    "both": "logical_and",
    "either": "logical_or",
    "inverse": "logical_not",
}
_SPECIAL = {"gamma": "gamma", "lgamma": "gammaln", "erf": "erf", "erfc": "erfc"}
_SAME = (
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "sqrt",
    "cbrt",
    "exp",
    "expm1",
    "log1p",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "degrees",
    "radians",
    "where",
)


@cache
def scalars() -> Mapping[str, Function]:
    """For Python's floats."""
    return {**{name: getattr(math, name) for name in _MATH}, **_OWN, "abs": abs, "power": math.pow}


@cache
def jitted_scalars() -> Mapping[str, Function]:
    """For floats in what numba compiles."""
    return {**scalars(), **{name: jitted(function) for name, function in _OWN.items()}}


@cache
def arrays() -> Mapping[str, Function]:
    """For numpy's arrays."""
    found: dict[str, Function] = {name: getattr(np, name) for name in _SAME}
    found |= {name: getattr(np, theirs) for name, theirs in _NUMPY.items()}
    found |= {name: _special(theirs) for name, theirs in _SPECIAL.items()}
    return {**found, "factorial": _factorial_arrays, "rounded": _rounded_arrays}


def _special(name: str) -> Function:
    """One that numpy itself has not."""

    def function(x: Any) -> Any:
        from scipy import special  # noqa: PLC0415  half a second, and rarely needed

        return getattr(special, name)(x)

    return function


def _factorial_arrays(x: Any) -> Any:
    return arrays()["gamma"](x + 1.0)


def jitted(function: Function) -> Function:
    """The same, compiled at its first call; a division by zero is infinite."""
    import numba  # noqa: PLC0415  a second or more, where something is compiled

    return numba.njit(error_model="numpy", inline="never")(function)


def _rounded_arrays(x: Any, places: Any) -> Any:
    scale = np.power(10.0, places)
    return np.rint(x * scale) / scale
