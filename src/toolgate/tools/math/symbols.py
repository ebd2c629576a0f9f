"""Trees as SymPy's objects, built node by node: no text of a caller ever reaches SymPy.

Needs SymPy, so that only workers import this.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.math.arithmetic import BITS, too_large
from toolgate.tools.math.tokens import wrong
from toolgate.tools.math.tree import (
    Applied,
    Chain,
    Choice,
    Comparison,
    Name,
    Node,
    Number,
    Step,
    Unary,
)
from toolgate.tools.math.vocabulary import TRUTHS

# It has no types of its own.
sympy: Any = importlib.import_module("sympy")

CONSTANTS: dict[str, Any] = {
    "pi": sympy.pi,
    "e": sympy.E,
    "tau": 2 * sympy.pi,
    "phi": sympy.GoldenRatio,
    "I": sympy.I,
}
# As large as the factorial of a whole number may be asked for.
_FACTORIAL = 1_000
_RELATIONS: dict[str, Any] = {
    "==": sympy.Eq,
    "!=": sympy.Ne,
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
}
_TRUTHS = {True: sympy.true, False: sympy.false}
_SAME = {
    **{name: name for name in ("sign", "sqrt", "cbrt", "exp", "sin", "cos", "tan", "asin", "acos")},
    **{name: name for name in ("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf")},
    **{name: name for name in ("floor", "erfc", "atan2")},
    "abs": "Abs",
    "ceil": "ceiling",
    "lgamma": "loggamma",
    "min": "Min",
    "max": "Max",
    "mod": "Mod",
}
_MORE: dict[str, Callable[[list[Any]], Any]] = {
    "expm1": lambda given: sympy.exp(given[0]) - 1,
    "log1p": lambda given: sympy.log(1 + given[0]),
    "log2": lambda given: sympy.log(given[0]) / sympy.log(2),
    "log10": lambda given: sympy.log(given[0]) / sympy.log(10),
    "log": lambda given: sympy.log(*given),
    "degrees": lambda given: given[0] * 180 / sympy.pi,
    "radians": lambda given: given[0] * sympy.pi / 180,
    "sum": lambda given: sympy.Add(*given),
    "prod": lambda given: sympy.Mul(*given),
    "mean": lambda given: sympy.Add(*given) / len(given),
    "hypot": lambda given: sympy.sqrt(sympy.Add(*(one**2 for one in given))),
    "clamp": lambda given: sympy.Max(given[1], sympy.Min(given[0], given[2])),
}


class Symbols:
    """The symbols of one problem: what is not unknown and not a constant is a parameter."""

    def __init__(self, symbols: Mapping[str, Any]) -> None:
        self._symbols = symbols

    def value(self, node: Node) -> Any:
        """An expression of SymPy's."""
        if isinstance(node, Number):
            return sympy.Rational(node.value.numerator, node.value.denominator)
        if isinstance(node, Name):
            return self._name(node)
        if isinstance(node, Unary):
            return self._unary(node)
        if isinstance(node, Choice):
            return sympy.Piecewise(
                (self.value(node.then), self.value(node.condition)),
                (self.value(node.otherwise), True),
            )
        if isinstance(node, Comparison):
            return self._comparison(node)
        if isinstance(node, Applied):
            return self._call(node)
        return self._chain(node)

    def _name(self, node: Name) -> Any:
        if node.name in self._symbols:
            return self._symbols[node.name]
        return CONSTANTS[node.name] if node.name in CONSTANTS else _TRUTHS[TRUTHS[node.name]]

    def _unary(self, node: Unary) -> Any:
        value = self.value(node.operand)
        if node.operator == "~":
            raise _unknown(node.at, "~")
        return -value if node.operator == "-" else sympy.Not(value)

    def _comparison(self, node: Comparison) -> Any:
        parts = [self.value(node.first), *(self.value(step.operand) for step in node.rest)]
        pairs = zip(parts, node.rest, parts[1:], strict=False)
        return sympy.And(*(_RELATIONS[step.operator](one, two) for one, step, two in pairs))

    def _chain(self, node: Chain) -> Any:
        first = self.value(node.first)
        if node.rest[0].operator in ("and", "or"):
            join = sympy.And if node.rest[0].operator == "and" else sympy.Or
            return join(first, *(self.value(step.operand) for step in node.rest))
        return reduce(self._step, node.rest, first)

    def _step(self, left: Any, step: Step) -> Any:
        right = self.value(step.operand)
        if step.operator == "**":
            return _power(left, right, step.at)
        if step.operator in ("/", "//", "%") and right == 0:
            raise wrong(step.at, "division by zero.")
        way = _STEPS.get(step.operator)
        if way is None:
            raise _unknown(step.at, step.operator)
        return way(left, right)

    def _call(self, node: Applied) -> Any:
        given = [self.value(one) for one in node.arguments]
        if node.function == "pow":
            return _power(given[0], given[1], node.at)
        if node.function == "root":
            return _power(given[0], 1 / given[1], node.at)
        if node.function in ("factorial", "gamma", "comb", "perm"):
            return _combinatorial(node, given)
        if node.function in _SAME:
            return getattr(sympy, _SAME[node.function])(*given)
        if node.function in _MORE:
            return _MORE[node.function](given)
        raise _unknown(node.at, node.function)


_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, two: one + two,
    "-": lambda one, two: one - two,
    "*": lambda one, two: one * two,
    "/": lambda one, two: one / two,
    "//": lambda one, two: sympy.floor(one / two),
    "%": sympy.Mod,
}


def _power(base: Any, exponent: Any, at: int) -> Any:
    """SymPy computes powers of numbers at once, so that they are bounded before."""
    if base.is_Rational and exponent.is_Rational and base not in (0, 1, -1):
        bits = max(int(base.p).bit_length(), int(base.q).bit_length())
        if bits * abs(exponent) > BITS:
            raise too_large(at)
    if base == 0 and exponent.is_negative:
        raise wrong(at, "zero has no negative power.")
    return base**exponent


def _combinatorial(node: Applied, given: list[Any]) -> Any:
    if any(one.is_number and not abs(one) <= _FACTORIAL for one in given):
        raise too_large(node.at)
    if node.function == "comb":
        return sympy.binomial(*given)
    if node.function == "perm":
        return sympy.ff(*given) if len(given) > 1 else sympy.factorial(*given)
    return (sympy.gamma if node.function == "gamma" else sympy.factorial)(*given)


def _unknown(at: int, what: str) -> ToolError:
    return wrong(at, f'"{what}" is not for equations. Use it in calculate.')
