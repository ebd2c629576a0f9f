"""Expressions that callers write: read by a grammar of our own into a tree that cannot run.

    expression = parse("2x^2 + sin(y)")        # at most 1,000 characters, 500 nodes, 50 deep
    expression.names                           # ("x", "y"): in order, constants not among them
    expression.check(("x", "y"))               # refuses other names, and says which was meant

Numbers are kept exactly. What computes with a tree is elsewhere: `evaluate` for one exact value,
`compiled` for functions of floats and arrays, `symbolic` for SymPy. A `ToolError` says where a text
is wrong and what to write instead. What was read once is remembered.

The grammar is what most people write: `+ - * / // % ** ^` (both are powers), `<< >> & | ~`,
comparisons that can be chained, `and or not`, `a if c else b` and `if(c, a, b)`, factorials `5!`,
products without a sign (`2x`, `3(x+1)`), names with an index (`x[0]`), and the functions of
`vocabulary`.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.math.parser import Parser
from toolgate.tools.math.tokens import words, wrong
from toolgate.tools.math.tree import Comparison, Name, Node, children, is_truth
from toolgate.tools.math.vocabulary import ALIASES, CONSTANTS, FUNCTIONS, TRUTHS, suggestion


class Expression(msgspec.Struct, frozen=True):
    """A text and its tree. Equal texts are equal expressions, so that one can be a cache's key."""

    text: str
    root: Node
    used: tuple[Name, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What it is a function of."""
        return tuple(one.name for one in self.used if not is_constant(one.name))

    def check(self, known: Collection[str]) -> None:
        """Refuse a name that is neither known nor a constant."""
        for one in self.used:
            if one.name not in known and not is_constant(one.name):
                raise wrong(one.at, _unknown(one.name, known))

    def __hash__(self) -> int:
        return hash(self.text)


class Equation(msgspec.Struct, frozen=True):
    """`left = right`, or an inequality; what stands alone is meant to be zero."""

    text: str
    left: Node
    relation: str
    right: Node | None
    used: tuple[Name, ...]


@lru_cache(maxsize=256)
def parse(text: str) -> Expression:
    """The expression that a text is."""
    root = Parser(words(text)).whole()
    return Expression(text, root, _names(root))


@lru_cache(maxsize=64)
def parse_equation(text: str) -> Equation:
    """The equation or inequality that a text is."""
    root = Parser(words(text), equations=True).whole()
    if not isinstance(root, Comparison) and is_truth(root):
        raise ToolError("Give each equation or inequality by itself: all of a list hold together.")
    if not isinstance(root, Comparison):
        return Equation(text, root, "=", None, _names(root))
    step, *more = root.rest
    if more:
        raise wrong(more[0].at, "one relation at a time; give each as an equation of its own.")
    relation = "=" if step.operator == "==" else step.operator
    return Equation(text, root.first, relation, step.operand, _names(root))


def parse_all(texts: Sequence[str]) -> tuple[Expression, ...]:
    """Several; an error says which one it is in."""
    found: list[Expression] = []
    for number, text in enumerate(texts, 1):
        try:
            found.append(parse(text))
        except ToolError as error:
            raise ToolError(f"Expression {number}: {error.message}") from None
    return tuple(found)


def is_constant(name: str) -> bool:
    """Whether a name has a value of its own, unless a caller gives it another."""
    return name in CONSTANTS or name in TRUTHS


def _names(root: Node) -> tuple[Name, ...]:
    found: dict[str, Name] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Name):
            found.setdefault(node.name, node)
        waiting += reversed(children(node))
    return tuple(found.values())


def _unknown(name: str, known: Collection[str]) -> str:
    if name in FUNCTIONS or name in ALIASES:
        return f'"{name}" is a function: write {name}(…).'
    given = f"It is a function of {', '.join(known)}." if known else "No variables are given."
    return f'"{name}" is not known. {given}{suggestion(name, [*known, *CONSTANTS])}'
