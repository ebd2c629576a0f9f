"""One value of an expression, as exactly as it can be told.

    evaluate(parse("0.1 + 0.2"), {})              # Fraction(3, 10)
    evaluate(parse("n! / 2"), {"n": 20})          # a whole number, exactly

Whole numbers and fractions stay exact; roots and logarithms that come out even do too. All else is
a float. It runs where it is called: what an expression can cost is bounded by its size and by what
`arithmetic` allows.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from toolgate.tools.math import arithmetic
from toolgate.tools.math.arithmetic import Value, settled, whole
from toolgate.tools.math.expression import Expression
from toolgate.tools.math.functions import APPLIED
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
from toolgate.tools.math.vocabulary import CONSTANTS, TRUTHS

Given = Mapping[str, Value]
_ARITHMETIC: dict[str, Callable[[Value, Value, int], Value]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "//": arithmetic.floor_divide,
    "%": arithmetic.modulo,
    "**": arithmetic.power,
    "<<": lambda one, two, at: arithmetic.shift(one, two, at, left=True),
    ">>": lambda one, two, at: arithmetic.shift(one, two, at, left=False),
    "&": lambda one, two, at: whole(one, at) & whole(two, at),
    "|": lambda one, two, at: whole(one, at) | whole(two, at),
}
_COMPARING: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(expression: Expression, given: Given) -> Value:
    """The value for what the names are given as; other names are refused first."""
    expression.check(given.keys())
    return _value(expression.root, given)


def _value(node: Node, given: Given) -> Value:
    return _WAYS[type(node)](node, given)


def _number(node: Number, _given: Given) -> Value:
    return settled(node.value, node.at)


def _name(node: Name, given: Given) -> Value:
    if node.name in given:
        return given[node.name]
    return CONSTANTS[node.name] if node.name in CONSTANTS else TRUTHS[node.name]


def _unary(node: Unary, given: Given) -> Value:
    value = _value(node.operand, given)
    if node.operator == "not":
        return not value
    return -value if node.operator == "-" else ~whole(value, node.at)


def _chain(node: Chain, given: Given) -> Value:
    value = _value(node.first, given)
    if node.rest[0].operator in ("and", "or"):
        return _logical(bool(value), node.rest, given)
    for step in node.rest:
        value = _ARITHMETIC[step.operator](value, _value(step.operand, given), step.at)
    return value


def _logical(value: bool, rest: tuple[Step, ...], given: Given) -> bool:  # noqa: FBT001
    decided = rest[0].operator == "or"
    for step in rest:
        if value is decided:
            return value
        value = bool(_value(step.operand, given))
    return value


def _comparison(node: Comparison, given: Given) -> Value:
    left = _value(node.first, given)
    for step in node.rest:
        right = _value(step.operand, given)
        if not _COMPARING[step.operator](left, right):
            return False
        left = right
    return True


def _choice(node: Choice, given: Given) -> Value:
    return _value(node.then if _value(node.condition, given) else node.otherwise, given)


def _call(node: Applied, given: Given) -> Value:
    return APPLIED[node.function](tuple(_value(one, given) for one in node.arguments), node.at)


_WAYS: dict[type, Callable[[Any, Given], Value]] = {
    Number: _number,
    Name: _name,
    Unary: _unary,
    Chain: _chain,
    Comparison: _comparison,
    Choice: _choice,
    Applied: _call,
}
