"""Expressions as machine code that the loops of this room call.

The loops are compiled for any function of a kind, once in a worker, so that a new expression costs
its own compilation alone; what was compiled is kept.

Needs numba, so that only workers import this.
"""

import os
from collections.abc import Sequence
from typing import Any

import numba

from toolgate.tools.math.compiled import packed_function, packed_system
from toolgate.tools.math.expression import parse, parse_all

_VECTOR = numba.float64[::1]
_SCALAR = numba.float64(_VECTOR)
_SYSTEM = numba.void(_VECTOR, _VECTOR)
# Workers keep what the loops were compiled to; in other processes nothing is written anywhere.
KEPT = bool(os.environ.get("NUMBA_CACHE_DIR"))
# What loops say that they take.
Scalar = numba.types.FunctionType(_SCALAR)
System = numba.types.FunctionType(_SYSTEM)


def scalar(text: str, names: Sequence[str]) -> Any:
    """`scalar(values) -> float`: one value for each name, in order."""
    expression = parse(text)
    expression.check(names)
    function = packed_function(expression, tuple(names), jit=True)
    function.compile(_SCALAR)  # pyright: ignore[reportFunctionMemberAccess]  it is numba's
    return function


def system(texts: Sequence[str], names: Sequence[str]) -> Any:
    """`system(values, into)`: writes what each expression gives."""
    expressions = parse_all(texts)
    for expression in expressions:
        expression.check(names)
    function = packed_system(expressions, tuple(names), jit=True)
    function.compile(_SYSTEM)  # pyright: ignore[reportFunctionMemberAccess]  it is numba's
    return function
