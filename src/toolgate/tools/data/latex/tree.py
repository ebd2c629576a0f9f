"""What a formula is made of, once it is read."""

import msgspec


class Node(msgspec.Struct, frozen=True):
    """A part of a formula."""


class Symbol(Node, frozen=True):
    """Signs that stand as they are; `role` says how they keep apart from others."""

    text: str
    role: str = "ordinary"


class Row(Node, frozen=True):
    """Parts beside each other."""

    parts: tuple[Node, ...]


class Scripts(Node, frozen=True):
    """A base with what stands above and below at its end."""

    base: Node
    above: Node | None = None
    below: Node | None = None


class Fraction(Node, frozen=True):
    """One part over another; without a bar for binomials."""

    top: Node
    bottom: Node
    bar: bool = True


class Root(Node, frozen=True):
    """A square root, or one of another degree."""

    inside: Node
    degree: Node | None = None


class Fence(Node, frozen=True):
    """What stands between two signs that grow with it."""

    left: str
    inside: Node
    right: str


class Operator(Node, frozen=True):
    """A sum, a product, an integral or a limit: scripts stand above and below it."""

    name: str


class Accent(Node, frozen=True):
    """A mark over or under a part."""

    mark: str
    inside: Node


class Grid(Node, frozen=True):
    """Rows of cells; `align` has a letter for each column, repeated."""

    rows: tuple[tuple[Node, ...], ...]
    align: str = "c"
    left: str = ""
    right: str = ""
    gap: int = 2
