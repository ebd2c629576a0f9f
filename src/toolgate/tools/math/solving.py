"""Solves equations with SymPy: exactly where it can, by searching where it cannot.

Needs SymPy, numpy and scipy, so that only workers import this.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.math.expression import Equation, Expression, parse_equation
from toolgate.tools.math.patience import TookTooLong, patience
from toolgate.tools.math.polynomials import polynomial, roots
from toolgate.tools.math.ranges import intervals, notation
from toolgate.tools.math.searching import FARTHEST, found_points, found_roots
from toolgate.tools.math.solution import answered, is_real, numbers, solving
from toolgate.tools.math.symbols import CONSTANTS, Symbols, sympy
from toolgate.tools.math.tree import Applied, Chain, Choice, Comparison, Name, Node, Step, children

# SymPy has many ways to say that it does not solve something.
_UNSOLVED = (Exception, TookTooLong)
# How long each way is tried, of the ten seconds that there are for all.
_SECONDS = 2.5
_EULER = "e is Euler's number, 2.718…; give a quantity another name."
_OF_REALS = frozenset(
    {"abs", "sign", "min", "max", "clamp", "floor", "ceil", "mod", "atan2", "hypot"}
)
_FREE = "{} can be anything: the others are told in terms of it."
_SEARCHED = (
    f"Nothing solves it exactly: these were found by searching real numbers up to {FARTHEST:,.0f}. "
    "There can be others."
)


def solve(equations: list[str], variables: list[str], domain: str) -> dict[str, Any]:
    """What solves all of them; `variables` are the unknowns, other names are parameters."""
    problem = [parse_equation(one) for one in equations]
    used = {one.name for equation in problem for one in equation.used}
    is_ordered = any(one.relation != "=" for one in problem)
    if domain != "real" and (is_ordered or any(_is_of_reals(one) for one in problem)):
        domain = "real"
    about = {"real": True} if domain == "real" else {}
    names = (used - CONSTANTS.keys()) | set(variables)
    known = {name: sympy.Symbol(name, **about) for name in sorted(names)}
    unknowns = [known[name] for name in variables]
    try:
        answer = _solved(problem, Symbols(known), unknowns, domain)
    except ToolError:
        raise
    except Exception:  # noqa: BLE001  SymPy has many of its own
        raise ToolError(
            "Nothing solves that. Write it in a simpler form, or give parameters as numbers."
        ) from None
    if "e" in used - set(variables) and any(_is_bare(one) for one in problem):
        answer["notes"].append(_EULER)
    return answer


def _solved(
    problem: Sequence[Equation], symbols: Symbols, unknowns: Sequence[Any], domain: str
) -> dict[str, Any]:
    if any(one.relation != "=" for one in problem):
        return _solved_set(problem, symbols, unknowns)
    sides = [_difference(one, symbols) for one in problem]
    if any(side.is_number and side.equals(0) is False for side in sides):
        return answered([], unknowns, notes=["An equation holds for no values at all."])
    if len(sides) == len(unknowns) == 1 and sides[0].free_symbols <= set(unknowns):
        return _solved_one(problem[0], sides[0], unknowns[0], domain)
    return _solved_system(problem, sides, unknowns)


def _is_of_reals(equation: Equation) -> bool:
    """Whether something in it is for real numbers alone."""
    waiting = _sides(equation)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (Choice, Comparison)):
            return True
        if isinstance(node, Applied) and node.function in _OF_REALS:
            return True
        if isinstance(node, Chain) and any(step.operator in ("//", "%") for step in node.rest):
            return True
        waiting += children(node)
    return False


def _sides(equation: Equation) -> list[Node]:
    return [equation.left] if equation.right is None else [equation.left, equation.right]


def _is_bare(equation: Equation) -> bool:
    """Whether `e` stands there other than as the base of a power."""
    waiting = _sides(equation)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Name) and node.name == "e":
            return True
        parts = children(node)
        if (
            isinstance(node, Chain)
            and node.rest[0].operator == "**"
            and isinstance(node.first, Name)
        ):
            parts = parts[1:]
        waiting += parts
    return False


@contextmanager
def _trying(seconds: float) -> Generator[None]:
    try:
        with patience(seconds):
            yield
    except TookTooLong:
        # What was interrupted is not remembered as what it was then.
        sympy.core.cache.clear_cache()
        raise


def _difference(equation: Equation, symbols: Symbols) -> Any:
    left = symbols.value(equation.left)
    return left if equation.right is None else left - symbols.value(equation.right)


def _solved_one(equation: Equation, side: Any, unknown: Any, domain: str) -> dict[str, Any]:
    """One equation in one unknown, with nothing else in it."""
    every = _roots(side, unknown)
    if every is not None:
        kept = [one for one in every if domain != "real" or is_real(one)]
        return answered([{unknown: one} for one in kept], [unknown])
    numbers_of = sympy.S.Reals if domain == "real" else sympy.S.Complexes
    found = _set(side, unknown, numbers_of)
    if found is sympy.S.EmptySet or isinstance(found, sympy.FiniteSet):
        return answered(solving([side], [{unknown: one} for one in found]), [unknown])
    if found == numbers_of:
        return answered([], [unknown], every=notation(found), notes=["Every number solves it."])
    some = _some(side, unknown)
    if found is not None and not found.has(sympy.ConditionSet):
        notes = ["There is no end of solutions: set has all of them, and solutions some."]
        return answered(some or [], [unknown], every=notation(found), notes=notes)
    if some is not None:
        return answered(some, [unknown], notes=["There can be other solutions."] if some else [])
    return _searched([equation], [unknown])


def _roots(side: Any, unknown: Any) -> list[Any] | None:
    try:
        with _trying(_SECONDS):
            found = polynomial(side, unknown)
            return None if found is None else roots(found)
    except _UNSOLVED:
        return None


def _set(side: Any, unknown: Any, numbers_of: Any) -> Any:
    """Every solution as a set of SymPy's; nothing where it finds none."""
    try:
        with _trying(_SECONDS):
            return sympy.solveset(side, unknown, numbers_of)
    except _UNSOLVED:
        return None


def _some(side: Any, unknown: Any) -> list[dict[Any, Any]] | None:
    try:
        with _trying(_SECONDS):
            return solving([side], sympy.solve(side, unknown, dict=True))
    except _UNSOLVED:
        return None


def _solved_system(
    problem: Sequence[Equation], sides: Sequence[Any], unknowns: Sequence[Any]
) -> dict[str, Any]:
    """Several at once, or with parameters, in terms of which the unknowns are told."""
    try:
        with _trying(_SECONDS + 1):
            found = solving(sides, sympy.solve(list(sides), list(unknowns), dict=True))
            free = [str(one) for one in unknowns if any(one not in each for each in found)]
            notes = [_FREE.format(", ".join(free))] if free else []
            return answered(found, unknowns, notes=notes)
    except _UNSOLVED:
        if set().union(*(side.free_symbols for side in sides)) - set(unknowns):
            raise ToolError(
                "Nothing solves that with parameters in it. Give the parameters as numbers."
            ) from None
        return _searched(problem, unknowns)


def _searched(problem: Sequence[Equation], unknowns: Sequence[Any]) -> dict[str, Any]:
    names = [str(one) for one in unknowns]
    expressions = [Expression(one.text, _zero(one), one.used) for one in problem]
    if len(names) == len(expressions) == 1:
        points = [(root,) for root in found_roots(expressions[0], names[0])]
    elif len(names) == len(expressions):
        points = found_points(expressions, names)
    else:
        raise ToolError(
            "Nothing solves that exactly, and a search needs as many equations as unknowns."
        )
    notes = [_SEARCHED] if points else [f"Nothing solves it exactly, nor up to {FARTHEST:,.0f}."]
    return numbers(points, names, notes)


def _zero(equation: Equation) -> Node:
    if equation.right is None:
        return equation.left
    return Chain(equation.left, (Step("-", equation.right, 0),))


def _solved_set(
    problem: Sequence[Equation], symbols: Symbols, unknowns: Sequence[Any]
) -> dict[str, Any]:
    """Inequalities: the real numbers for which all of them hold."""
    found = sympy.S.Reals
    sides = [_difference(one, symbols) for one in problem]
    if len(unknowns) != 1 or any(side.free_symbols - set(unknowns) for side in sides):
        raise ToolError("Inequalities are solved for one unknown, and without parameters.")
    for equation, side in zip(problem, sides, strict=True):
        try:
            found = found.intersect(_holding(side, equation.relation, unknowns[0]))
        except _UNSOLVED:
            raise ToolError(
                "Nothing solves that inequality. Solve it as an equation, and try numbers between."
            ) from None
    notes = ["No number solves it."] if found is sympy.S.EmptySet else []
    period = _period(sides, unknowns[0])
    if period is not None:
        notes.append(f"It repeats every {period}: set is the part from 0 to {period}.")
    listed = list(found) if isinstance(found, sympy.FiniteSet) else []
    answer = answered(
        [{unknowns[0]: one} for one in listed], unknowns, every=notation(found), notes=notes
    )
    return {**answer, "intervals": intervals(found)}


def _period(sides: Sequence[Any], unknown: Any) -> str | None:
    """After how much something repeats, of which SymPy tells the first part alone."""
    periods = [sympy.periodicity(side, unknown) for side in sides if side.has(unknown)]
    found = [one for one in periods if one is not None and one != 0]
    if found and len(sides) > 1:
        raise ToolError("What repeats is solved by itself. Give that inequality alone.")
    return str(found[0]) if found else None


def _holding(side: Any, relation: str, unknown: Any) -> Any:
    if relation in ("=", "!="):
        equal = sympy.solveset(side, unknown, sympy.S.Reals)
        return equal if relation == "=" else sympy.S.Reals - equal
    ways = {"<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge}
    holds = ways[relation](side, 0)
    if holds in (sympy.true, sympy.false):
        return sympy.S.Reals if holds == sympy.true else sympy.S.EmptySet
    return sympy.solve_univariate_inequality(holds, unknown, relational=False)
