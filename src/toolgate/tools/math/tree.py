"""What an expression is made of, once it is read: numbers, names, and what is done with them.

A tree holds nothing that could run. Whoever computes with it walks it, and knows every kind.
"""

from fractions import Fraction
from typing import TypeAlias

import msgspec

# The operators, by how they bind; those of one line are worked off from left to right.
LOGICAL_OR = ("or",)
LOGICAL_AND = ("and",)
COMPARING = ("==", "!=", "<", "<=", ">", ">=")
BITS_OR = ("|",)
BITS_AND = ("&",)
SHIFTS = ("<<", ">>")
SUMS = ("+", "-")
PRODUCTS = ("*", "/", "//", "%")
POWER = "**"


class Number(msgspec.Struct, frozen=True):
    """A number as it is written, exactly."""

    value: int | Fraction
    at: int


class Name(msgspec.Struct, frozen=True):
    """A variable or a constant; `x[0]` is one name."""

    name: str
    at: int


class Unary(msgspec.Struct, frozen=True):
    """`-x`, `~x` or `not x`."""

    operator: str
    operand: "Node"
    at: int


class Step(msgspec.Struct, frozen=True):
    """An operator and what stands to its right."""

    operator: str
    operand: "Node"
    at: int


class Chain(msgspec.Struct, frozen=True):
    """`a + b - c`: operators that bind alike, from left to right; a power has a single step."""

    first: "Node"
    rest: tuple[Step, ...]


class Comparison(msgspec.Struct, frozen=True):
    """`a < b <= c`: each neighbour with its neighbour, and all of them hold."""

    first: "Node"
    rest: tuple[Step, ...]


class Choice(msgspec.Struct, frozen=True):
    """One of two, by a condition; the other one is not computed."""

    condition: "Node"
    then: "Node"
    otherwise: "Node"


class Applied(msgspec.Struct, frozen=True):
    """A function of the vocabulary, with as many arguments as it takes."""

    function: str
    arguments: tuple["Node", ...]
    at: int


Node: TypeAlias = Number | Name | Unary | Chain | Comparison | Choice | Applied


def is_truth(node: Node) -> bool:
    """Whether it is a condition, and not a number."""
    if isinstance(node, Chain):
        return node.rest[0].operator in ("and", "or")
    return isinstance(node, Comparison) or (isinstance(node, Unary) and node.operator == "not")


def children(node: Node) -> tuple[Node, ...]:
    """What a node is made of."""
    if isinstance(node, (Chain, Comparison)):
        return (node.first, *(step.operand for step in node.rest))
    if isinstance(node, Applied):
        return node.arguments
    if isinstance(node, Choice):
        return (node.condition, node.then, node.otherwise)
    return (node.operand,) if isinstance(node, Unary) else ()
