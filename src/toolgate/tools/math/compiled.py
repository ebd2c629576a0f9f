"""Functions of floats and arrays from expressions, made once and kept.

    expression = parse("x^2 + sin(y)")
    expression.check(("x", "y"))                        # first: refuses names that are not bound

    arrays = array_function(expression, ("x", "y"))     # numpy: arrays(xs, ys) -> an array
    plain = scalar_function(expression, ("x", "y"))     # plain(x, y) -> float
    fast = scalar_function(expression, ("x", "y"), jit=True)         # the same, by numba

    packed = packed_function(expression, ("x", "y"), jit=True)       # packed(values) -> float
    system = packed_system((one, two), ("t", "x", "y"), jit=True)    # system(values, into) -> None

`values` is an array with one element for each name, in order; `into` takes one for each expression.
An expression without names gives a single number, also for arrays. With `jit` a function can be
called from other functions of numba; it is compiled at its first call.
What has no value is not an error there but `nan` or `inf`, as in numpy: look at what comes out. A
plain function without `jit` raises `ValueError`, `ZeroDivisionError` or `OverflowError` instead.

Needs numpy and numba, so that only workers import this.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from toolgate.tools.math import floats
from toolgate.tools.math.emitting import Arrays, Scalars
from toolgate.tools.math.expression import Expression

Function = Callable[..., Any]
_KEPT = 256


@lru_cache(maxsize=_KEPT)
def array_function(expression: Expression, names: tuple[str, ...]) -> Function:
    """Of as many arrays as there are names, all of one shape."""
    bound = {name: _argument(number) for number, name in enumerate(names)}
    body = Arrays(bound).value(expression.root)
    return _made(
        [_argument_name(number) for number in range(len(names))],
        [ast.Return(body)],
        floats.arrays(),
    )


@lru_cache(maxsize=_KEPT)
def scalar_function(
    expression: Expression, names: tuple[str, ...], *, jit: bool = False
) -> Function:
    """Of as many floats as there are names."""
    bound = {name: _argument(number) for number, name in enumerate(names)}
    body = Scalars(bound).value(expression.root)
    return _compiled(
        [_argument_name(number) for number in range(len(names))], [ast.Return(body)], jit=jit
    )


@lru_cache(maxsize=_KEPT)
def packed_function(
    expression: Expression, names: tuple[str, ...], *, jit: bool = False
) -> Function:
    """Of one array that holds a value for each name."""
    body = Scalars(_elements(names)).value(expression.root)
    return _compiled(["values"], [ast.Return(body)], jit=jit)


@lru_cache(maxsize=_KEPT)
def packed_system(
    expressions: tuple[Expression, ...], names: tuple[str, ...], *, jit: bool = False
) -> Function:
    """Of one array for all names; writes what each expression gives into another one."""
    emitting = Scalars(_elements(names))
    body: list[ast.stmt] = [
        ast.Assign([_element("into", number, ast.Store())], emitting.value(one.root))
        for number, one in enumerate(expressions)
    ]
    return _compiled(["values", "into"], body, jit=jit)


def _elements(names: Sequence[str]) -> Mapping[str, Callable[[], ast.expr]]:
    def bound(number: int) -> Callable[[], ast.expr]:
        return lambda: _element("values", number, ast.Load())

    return {name: bound(number) for number, name in enumerate(names)}


def _element(array: str, number: int, how: ast.expr_context) -> ast.expr:
    return ast.Subscript(ast.Name(array, ast.Load()), ast.Constant(number), how)


def _argument(number: int) -> Callable[[], ast.expr]:
    return lambda: ast.Name(_argument_name(number), ast.Load())


def _argument_name(number: int) -> str:
    return f"given{number}"


def _compiled(parameters: list[str], body: list[ast.stmt], *, jit: bool) -> Function:
    if not jit:
        return _made(parameters, body, floats.scalars())
    return floats.jitted(_made(parameters, body, floats.jitted_scalars()))


def _made(parameters: list[str], body: list[ast.stmt], meaning: Mapping[str, Function]) -> Function:
    """A function of a syntax tree of ours, which can reach the functions of the table alone."""
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    definition = ast.FunctionDef("function", arguments, body, [])
    module = ast.fix_missing_locations(ast.Module([definition], []))
    place: dict[str, Any] = {**meaning, "__builtins__": {}}
    # From a tree, in which no text of a caller is.
    [code] = [
        one
        for one in compile(module, "<expression>", "exec").co_consts
        if isinstance(one, CodeType)
    ]
    return FunctionType(code, place, "function")
