"""Reads words into a tree: by how operators bind, and never deeper than is allowed."""

from collections.abc import Generator
from contextlib import contextmanager

from toolgate.errors import ToolError
from toolgate.tools.math import tree
from toolgate.tools.math.tokens import END, NAME, NUMBER, Token, number, wrong
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
from toolgate.tools.math.vocabulary import (
    ALIASES,
    ELSEWHERE,
    FUNCTIONS,
    KEYWORDS,
    LISTS,
    suggestion,
)

DEEPEST = 50
NODES = 500
_LOGICAL = frozenset({"and", "or"})
_DIVIDING = frozenset({"/", "//", "%"})
_COMPARE, _NOT, _PRODUCT, _SIGNED, _POWER = 4, 3, 9, 10, 11
_LEVELS = {
    operator: level
    for level, operators in (
        (1, tree.LOGICAL_OR),
        (2, tree.LOGICAL_AND),
        (_COMPARE, tree.COMPARING),
        (5, tree.BITS_OR),
        (6, tree.BITS_AND),
        (7, tree.SHIFTS),
        (8, tree.SUMS),
        (_PRODUCT, tree.PRODUCTS),
        (_POWER, (tree.POWER,)),
    )
    for operator in operators
}


class Parser:
    """One text's words. Its own recursion is bounded as the tree is."""

    def __init__(self, found: list[Token], *, equations: bool = False) -> None:
        self._words = found
        self._next = 0
        self._depth = 0
        self._equations = equations

    def whole(self) -> Node:
        """The tree of all words."""
        if self._word.kind == END:
            raise ToolError("There is nothing to compute. Write an expression like 2 * (3 + 4).")
        found = self._choice()
        if self._word.kind != END:
            raise wrong(self._word.at, self._left_over())
        _bound(found)
        return found

    @property
    def _word(self) -> Token:
        return self._words[self._next]

    def _take(self) -> Token:
        word = self._words[self._next]
        self._next += 1
        return word

    def _takes(self, text: str) -> bool:
        word = self._word
        if word.text != text or word.kind == END:
            return False
        self._next += 1
        return True

    def _close(self, sign: str, opened: Token) -> None:
        word = self._word
        if self._takes(sign):
            return
        if word.kind == END:
            raise wrong(word.at, f'the "{opened.text}" of column {opened.at + 1} is not closed.')
        raise wrong(word.at, f'an operator or a "{sign}" is missing before "{word.text}".')

    @contextmanager
    def _deeper(self, at: int) -> Generator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise wrong(at, f"it is nested more than {DEEPEST} deep. Split it into parts.")
        yield
        self._depth -= 1

    def _choice(self) -> Node:
        """Whatever can stand alone: `a if c else b`, or anything that binds closer."""
        then = self._read(0)
        word = self._word
        if word.text != "if" or word.kind == END:
            return then
        self._next += 1
        condition = self._read(0)
        if not self._takes("else"):
            raise wrong(self._word.at, '"else" is missing: write a if condition else b.')
        with self._deeper(word.at):
            return Choice(condition, then, self._choice())

    def _read(self, floor: int) -> Node:
        """As much as binds at least so closely."""
        left = self._prefix(floor)
        while (level := self._level()) is not None and level >= floor:
            left = self._power(left) if level == _POWER else self._chain(left, level)
        return left

    def _power(self, base: Node) -> Node:
        word = self._take()
        with self._deeper(word.at):
            # From right to left: what follows is the whole exponent.
            return Chain(base, (Step(tree.POWER, self._read(_SIGNED), word.at),))

    def _chain(self, first: Node, level: int) -> Node:
        steps: list[Step] = []
        while self._level() == level:
            at = self._word.at
            if self._is_product():
                operator = "*"
                if steps and steps[-1].operator in _DIVIDING:
                    raise wrong(
                        at,
                        "a product without a sign after a division can be read in two ways. "
                        "Write * and use ( and ): (1/2)*x or 1/(2*x).",
                    )
            else:
                operator = self._operator(self._take())
            steps.append(Step(operator, self._read(level + 1), at))
        return (Comparison if level == _COMPARE else Chain)(first, tuple(steps))

    def _level(self) -> int | None:
        """How closely what comes next binds; nothing where it is no operator."""
        word = self._word
        if word.kind == END or (word.kind == NAME and word.text in KEYWORDS - _LOGICAL):
            return None
        if word.text == "=":
            return _COMPARE
        return _LEVELS.get(word.text, _PRODUCT if self._is_product() else None)

    def _operator(self, word: Token) -> str:
        if word.text != "=":
            return word.text
        if self._depth:
            raise wrong(word.at, 'write "==" to compare; arguments are given in order, unnamed.')
        if not self._equations:
            raise wrong(word.at, 'write "==" to compare. To solve an equation, use symbolic_solve.')
        return "=="

    def _is_product(self) -> bool:
        """Whether a product without a sign goes on here: `2x`, `3(x+1)`, `(a)(b)`."""
        word = self._word
        if self._next == 0 or (word.kind != NAME and word.text != "("):
            return False
        before = self._words[self._next - 1]
        is_value = before.kind == NUMBER or before.text == ")"
        return is_value and before.end == word.at and word.text not in KEYWORDS

    def _prefix(self, floor: int) -> Node:
        word = self._word
        if word.kind == NAME and word.text == "not" and floor <= _NOT:
            self._next += 1
            with self._deeper(word.at):
                return Unary("not", self._read(_NOT), word.at)
        if word.text in ("-", "+", "~"):
            self._next += 1
            with self._deeper(word.at):
                operand = self._read(_SIGNED)
            return operand if word.text == "+" else Unary(word.text, operand, word.at)
        found = self._atom()
        while self._word.text == "!":
            found = Applied("factorial", (found,), self._take().at)
        return found

    def _atom(self) -> Node:
        word = self._take()
        if word.kind == NUMBER:
            return Number(number(word), word.at)
        if word.kind == NAME and (word.text not in KEYWORDS or word.text == "if"):
            if self._word.text == "(":
                return self._call(word)
            if word.text != "if":
                return Name(word.text, word.at)
        if word.text == "(":
            with self._deeper(word.at):
                found = self._choice()
            if self._word.text == ",":
                raise wrong(self._word.at, "there are no tuples here; a comma separates arguments.")
            self._close(")", word)
            return found
        raise wrong(word.at, _misplaced(word) + self._percent())

    def _percent(self) -> str:
        """A hint where the word before the last is `%`: it was meant as a percentage."""
        is_after = self._next > 1 and self._words[self._next - 2].text == "%"
        return " % is the remainder of a division: write 15/100 for 15%." if is_after else ""

    def _call(self, word: Token) -> Node:
        function = ALIASES.get(word.text, word.text)
        arity = FUNCTIONS.get(function)
        if arity is None:
            hint = suggestion(word.text, [*FUNCTIONS, *ALIASES])
            if word.text in ELSEWHERE:
                hint = " The tool statistics computes that."
            raise wrong(
                word.at,
                f'"{word.text}" is not a function here.{hint or " For a product write *."}',
            )
        with self._deeper(word.at):
            arguments = self._arguments(takes_list=function in LISTS)
        if not arity.least <= len(arguments) <= arity.most:
            raise wrong(word.at, f"{word.text} takes {arity} and was given {len(arguments)}.")
        if function == "if":
            return Choice(*arguments)
        return Applied(function, arguments, word.at)

    def _arguments(self, *, takes_list: bool) -> tuple[Node, ...]:
        opened = self._take()
        is_list = takes_list and self._word.text == "["
        inner = self._take() if is_list else opened
        found: list[Node] = []
        if self._word.text not in (")", "]"):
            found.append(self._choice())
            while self._takes(","):
                found.append(self._choice())
        if is_list:
            self._close("]", inner)
        self._close(")", opened)
        return tuple(found)

    def _left_over(self) -> str:
        word = self._word
        if word.text == ")":
            return 'there is a ")" too much.'
        if word.text == ",":
            told = "one expression at a time; a comma separates arguments of a function."
            return f"{told} A number has none: write 1000, not 1,000."
        if word.text in ("[", "]"):
            return "lists are arguments of sum, mean, min and the like, and nothing else."
        before = self._words[self._next - 1].text
        if before in FUNCTIONS or before in ALIASES:
            return f"{before} is a function: write {before}({word.text})."
        return f'an operator is missing before "{word.text}".{self._percent()}'


def _misplaced(word: Token) -> str:
    if word.kind == END:
        return "it ends too early: a number, a name or a ( is missing."
    if word.text == "[":
        return "lists are arguments of sum, mean, min and the like, and nothing else."
    return f'"{word.text}" cannot stand here: a number, a name or a ( is missing.'


def _bound(root: Node) -> None:
    """Refuse what is too large or too deep to walk."""
    count = 0
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > NODES:
            raise ToolError(
                f"The expression is too complex: at most {NODES} numbers, names and operations, "
                f"nested at most {DEEPEST} deep. Split it into parts."
            )
        waiting += [(one, depth + 1) for one in tree.children(node)]
