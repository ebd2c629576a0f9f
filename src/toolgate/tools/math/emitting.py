"""Turns a checked tree into Python's own syntax tree, node by node, for functions of floats.

No text of a caller is in what comes out: numbers are constants, names are what they are bound to,
and functions are those of one table, which `compiled` gives a meaning.
"""

import ast
from collections.abc import Callable, Mapping
from functools import reduce

from toolgate.errors import ToolError
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
from toolgate.tools.math.vocabulary import CONSTANTS, TRUTHS

_NOT_FOR_FLOATS = frozenset({"gcd", "lcm", "comb", "perm", "bitxor", "median"})
# An exponent up to here stays whole: a power that is a few products.
_WHOLE_EXPONENT = 64
_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
}
_COMPARING: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}


class Scalars:
    """For functions of single floats: a choice computes one branch alone."""

    def __init__(self, bound: Mapping[str, Callable[[], ast.expr]]) -> None:
        self._bound = bound

    def value(self, node: Node) -> ast.expr:
        """A float."""
        if isinstance(node, Number):
            return constant(_float(node))
        if isinstance(node, Name):
            return self._name(node)
        if isinstance(node, Choice):
            return self.choose(
                self.truth(node.condition), self.value(node.then), self.value(node.otherwise)
            )
        if isinstance(node, Applied):
            return self._call(node)
        if isinstance(node, Unary) and node.operator == "-":
            return ast.UnaryOp(ast.USub(), self.value(node.operand))
        if isinstance(node, Chain) and node.rest[0].operator not in ("and", "or"):
            return reduce(self._step, node.rest, self.value(node.first))
        return self.choose(self.truth(node), constant(1.0), constant(0.0))

    def truth(self, node: Node) -> ast.expr:
        """A condition; a number holds when it is not zero."""
        if isinstance(node, Comparison):
            return self.compare(node)
        if isinstance(node, Chain) and node.rest[0].operator in ("and", "or"):
            every = [node.first, *(step.operand for step in node.rest)]
            return self.join(node.rest[0].operator, [self.truth(one) for one in every])
        if isinstance(node, Unary) and node.operator == "not":
            return self.negate(self.truth(node.operand))
        if isinstance(node, Unary) and node.operator == "~":
            raise _whole(node.at, "~")
        return ast.Compare(self.value(node), [ast.NotEq()], [constant(0.0)])

    def choose(self, condition: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
        """One of two."""
        return ast.IfExp(condition, then, otherwise)

    def join(self, operator: str, parts: list[ast.expr]) -> ast.expr:
        """All of them, or any."""
        return ast.BoolOp(ast.And() if operator == "and" else ast.Or(), parts)

    def negate(self, condition: ast.expr) -> ast.expr:
        """The opposite."""
        return ast.UnaryOp(ast.Not(), condition)

    def compare(self, node: Comparison) -> ast.expr:
        """Each with its neighbour."""
        return ast.Compare(
            self.value(node.first),
            [_COMPARING[step.operator]() for step in node.rest],
            [self.value(step.operand) for step in node.rest],
        )

    def _name(self, node: Name) -> ast.expr:
        if node.name in self._bound:
            return self._bound[node.name]()
        if node.name in CONSTANTS:
            return constant(CONSTANTS[node.name])
        return constant(float(TRUTHS[node.name]))

    def _step(self, left: ast.expr, step: Step) -> ast.expr:
        arithmetic = _ARITHMETIC.get(step.operator)
        if step.operator == "**":
            return self._raise(left, step.operand)
        if arithmetic is not None:
            return ast.BinOp(left, arithmetic(), self.value(step.operand))
        if step.operator in ("//", "%"):
            function = "floored" if step.operator == "//" else "modulo"
            return called(function, left, self.value(step.operand))
        raise _whole(step.at, step.operator)

    def _raise(self, base: ast.expr, exponent: Node) -> ast.expr:
        if isinstance(exponent, Number) and exponent.value in range(1, _WHOLE_EXPONENT):
            return ast.BinOp(base, ast.Pow(), ast.Constant(int(exponent.value)))
        return called("power", base, self.value(exponent))

    def _call(self, node: Applied) -> ast.expr:
        name = node.function
        if name in _NOT_FOR_FLOATS:
            raise _whole(node.at, name)
        if name == "pow":
            return self._raise(self.value(node.arguments[0]), node.arguments[1])
        given = [self.value(one) for one in node.arguments]
        if name in _FORMS and (name, len(given)) != ("log", 1):
            return _FORMS[name](given)
        return called({"mod": "modulo"}.get(name, name), *given)


class Arrays(Scalars):
    """For functions of whole arrays: both branches are computed, and chosen from one by one."""

    def __init__(self, bound: Mapping[str, Callable[[], ast.expr]]) -> None:
        super().__init__(bound)
        self._kept = 0

    def choose(self, condition: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
        """One of two, for each element."""
        return called("where", condition, then, otherwise)

    def join(self, operator: str, parts: list[ast.expr]) -> ast.expr:
        """All of them, or any."""
        name = "both" if operator == "and" else "either"
        return reduce(lambda one, two: called(name, one, two), parts)

    def negate(self, condition: ast.expr) -> ast.expr:
        """The opposite."""
        return called("inverse", condition)

    def compare(self, node: Comparison) -> ast.expr:
        """Each with its neighbour; what stands between two is computed once."""
        found: list[ast.expr] = []
        left = self.value(node.first)
        for number, step in enumerate(node.rest, 1):
            right = again = self.value(step.operand)
            if number < len(node.rest):
                self._kept += 1
                name = f"kept{self._kept}"
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                again = ast.Name(name, ast.Load())
            found.append(ast.Compare(left, [_COMPARING[step.operator]()], [right]))
            left = again
        return self.join("and", found)


def constant(value: float) -> ast.expr:
    """A number."""
    return ast.Constant(value)


def called(name: str, *given: ast.expr) -> ast.expr:
    """A function of the table."""
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def _added(given: list[ast.expr]) -> ast.expr:
    return reduce(lambda one, two: ast.BinOp(one, ast.Add(), two), given)


def _squared(one: ast.expr) -> ast.expr:
    return ast.BinOp(one, ast.Pow(), ast.Constant(2))


# What is not a call of a function by the same name; every argument is used once.
_FORMS: dict[str, Callable[[list[ast.expr]], ast.expr]] = {
    "sum": _added,
    "prod": lambda given: reduce(lambda one, two: ast.BinOp(one, ast.Mult(), two), given),
    "mean": lambda given: ast.BinOp(_added(given), ast.Div(), constant(float(len(given)))),
    "min": lambda given: reduce(lambda one, two: called("least", one, two), given),
    "max": lambda given: reduce(lambda one, two: called("most", one, two), given),
    "hypot": lambda given: called("sqrt", _added([_squared(one) for one in given])),
    "clamp": lambda given: called("most", given[1], called("least", given[0], given[2])),
    "log": lambda given: ast.BinOp(called("log", given[0]), ast.Div(), called("log", given[1])),
    "root": lambda given: called("power", given[0], ast.BinOp(constant(1.0), ast.Div(), given[1])),
    "round": lambda given: called("rounded", given[0], (*given, constant(0.0))[1]),
}


def _float(node: Number) -> float:
    try:
        return float(node.value)
    except OverflowError:
        raise wrong(node.at, "that number is too large for this computation.") from None


def _whole(at: int, what: str) -> ToolError:
    return wrong(at, f'"{what}" is for calculate alone, and not for a function of real numbers.')
