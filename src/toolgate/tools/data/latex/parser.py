"""The grammar of formulas: commands and their arguments, scripts, fences and environments."""

from collections.abc import Callable

from toolgate.errors import ToolError
from toolgate.tools.data.latex import names
from toolgate.tools.data.latex.alphabets import ALPHABETS, letters
from toolgate.tools.data.latex.tokens import CHARACTER, COMMAND, END, Token, bare, words
from toolgate.tools.data.latex.tree import (
    Accent,
    Fence,
    Fraction,
    Grid,
    Node,
    Operator,
    Root,
    Row,
    Scripts,
    Symbol,
)

DEEPEST = 30
_TEXTS = frozenset(
    "text textrm textbf textit texttt textsf mathrm mathbf mathit mathsf mathtt boldsymbol "
    "operatorname operatorname* mbox bm pmb".split()
)
_GRIDS = {
    "matrix": ("", ""), "smallmatrix": ("", ""), "pmatrix": ("(", ")"), "bmatrix": ("[", "]"),
    "Bmatrix": ("{", "}"), "vmatrix": ("|", "|"), "Vmatrix": ("‖", "‖"), "cases": ("{", ""),
    "array": ("", ""), "substack": ("", ""),
}  # fmt: skip
_ALIGNED = frozenset("aligned align alignat split eqnarray".split())
_GATHERED = frozenset("gather gathered equation multline displaymath math".split())
_RELATIONS, _BINARIES, _OPENING, _CLOSING = "=<>:≤≥≠≈→∈", "+-*±×÷·−", "([{⟨⌊⌈", ")]}⟩⌋⌉"


class Parser:
    """One formula; commands that are not known are remembered."""

    def __init__(self, text: str) -> None:
        self._words = words(bare(text))
        self._at = 0
        self._depth = 0
        self.unknown: dict[str, None] = {}

    def whole(self) -> Node:
        """All of it; lines are parted by `\\\\`."""
        found = (
            self._grid(frozenset(), "rl", gap=0) if self._has_lines() else self._row(frozenset())
        )
        if self._next.kind != END:
            raise self._wrong(f"{_shown(self._next)} closes nothing that is open")
        return found

    @property
    def _next(self) -> Token:
        return self._words[self._at]

    def _take(self) -> Token:
        token = self._words[self._at]
        if token.kind != END:
            self._at += 1
        return token

    def _wrong(self, what: str, token: Token | None = None) -> ToolError:
        return ToolError(f"Column {(token or self._next).at + 1}: {what}.")

    def _has_lines(self) -> bool:
        depth = 0
        for one in self._words:
            if one.kind == COMMAND and one.text in ("begin", "end"):
                depth += 1 if one.text == "begin" else -1
            if not depth and one.kind == COMMAND and one.text in ("\\", "newline"):
                return True
        return False

    def _row(self, ends: frozenset[str]) -> Node:
        """Parts up to one of these, which stays."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"it is nested deeper than {DEEPEST} levels")
        parts: list[Node] = []
        while self._next.kind != END and _key(self._next) not in ends:
            if _key(self._next) in ("}", "\\right", "\\end", "&", "\\\\"):
                break
            if _key(self._next) in ("\\over", "\\choose"):
                return self._infix(parts, ends)
            part = self._part(parts)
            if part is not None:
                parts.append(part)
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _infix(self, parts: list[Node], ends: frozenset[str]) -> Node:
        name = self._take().text
        bottom = self._row(ends)
        self._depth -= 1
        found = Fraction(Row(tuple(parts)), bottom, bar=name == "over")
        return found if found.bar else Fence("(", found, ")")

    def _part(self, before: list[Node]) -> Node | None:
        token = self._next
        if token.kind == CHARACTER and token.text in "^_'":
            base = before.pop() if before else Symbol("")
            return self._scripts(base)
        return self._atom()

    def _scripts(self, base: Node) -> Node:
        above: Node | None = None
        below: Node | None = None
        is_raised = False
        while self._next.kind == CHARACTER and self._next.text in "^_'":
            token = self._take()
            if token.text == "'":
                primes = 1
                while self._next.kind == CHARACTER and self._next.text == "'":
                    self._take()
                    primes += 1
                above = _joined(above, Symbol("′" * primes))
            elif token.text == "^":
                if is_raised:
                    raise self._wrong("a base has two upper scripts; group it with { }", token)
                is_raised = True
                above = _joined(above, self._argument())
            elif below is not None:
                raise self._wrong("a base has two lower scripts; group it with { }", token)
            else:
                below = self._argument()
        return Scripts(base, above, below)

    def _argument(self) -> Node:
        """A group, or the next part alone."""
        if _key(self._next) == "{":
            return self._group()
        if self._next.kind == END or _key(self._next) in ("}", "&", "\\\\", "\\right", "\\end"):
            raise self._wrong("an argument is missing; write it as { }")
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"it is nested deeper than {DEEPEST} levels")
        found = self._atom()
        self._depth -= 1
        return Row(()) if found is None else found

    def _group(self) -> Node:
        opened = self._take()
        found = self._row(frozenset("}"))
        if _key(self._next) != "}":
            raise self._wrong("'{' is never closed", opened)
        self._take()
        return found

    def _atom(self) -> Node | None:
        token = self._next
        if token.kind == COMMAND:
            return self._command()
        if token.text == "{":
            return self._group()
        self._take()
        if token.text == "~":
            return Symbol(" ")
        if token.text == "&":
            raise self._wrong("'&' belongs into a matrix or an aligned formula", token)
        return _character(token.text)

    def _command(self) -> Node | None:
        token = self._take()
        name = token.text
        for table, role in (
            (names.ORDINARY, "ordinary"),
            (names.BINARY, "binary"),
            (names.RELATION, "relation"),
        ):
            if name in table:
                return _fitting(table[name], role)
        if name in names.SPACES:
            return Symbol(" " * names.SPACES[name], "space")
        if name in names.SILENT:
            return None
        if name in names.FUNCTIONS:
            return Symbol(name, "function")
        if name in names.LIMITS or name in names.LARGE:
            return Operator(name)
        return self._construct(token)

    def _construct(self, token: Token) -> Node | None:
        name = token.text
        if name in names.ACCENTS:
            return Accent(names.ACCENTS[name], self._argument())
        if name in _TEXTS:
            return self._text(token)
        if name in ALPHABETS:
            return Symbol(letters(name, self._raw()))
        if name in _CONSTRUCTS:
            return _CONSTRUCTS[name](self, token)
        self.unknown["\\" + name] = None
        return Symbol("\\" + name, "function")

    def fraction(self, _token: Token) -> Node:
        return Fraction(self._argument(), self._argument())

    def binomial(self, _token: Token) -> Node:
        return Fence("(", Fraction(self._argument(), self._argument(), bar=False), ")")

    def root(self, _token: Token) -> Node:
        degree = self._optional()
        return Root(self._argument(), degree)

    def over(self, token: Token) -> Node:
        mark, base = self._argument(), self._argument()
        if token.text == "underset":
            mark, base = base, mark
        return Fraction(mark, base, bar=False)

    def negated(self, _token: Token) -> Node | None:
        found = self._atom() if self._next.kind != END else None
        return Symbol(found.text + "\u0338", found.role) if isinstance(found, Symbol) else found

    def modulo(self, _token: Token) -> Node:
        return Row((Symbol("  (mod ", "open"), self._argument(), Symbol(")", "close")))

    def _optional(self) -> Node | None:
        if _key(self._next) != "[":
            return None
        opened = self._take()
        found = self._row(frozenset("]"))
        if _key(self._next) != "]":
            raise self._wrong("'[' is never closed", opened)
        self._take()
        return found

    def _text(self, token: Token) -> Node:
        text = self._raw()
        return Symbol(text, "function" if token.text.startswith("operatorname") else "ordinary")

    def _raw(self) -> str:
        """Characters as they are, with their spaces; commands by the signs that they stand for."""
        if _key(self._next) != "{":
            return self._take().text
        opened = self._take()
        depth, said = 1, ""
        while depth:
            token = self._take()
            if token.kind == END:
                raise self._wrong("'{' is never closed", opened)
            depth += {"{": 1, "}": -1}.get(_key(token), 0)
            if depth and _key(token) not in ("{", "}"):
                sign = names.ORDINARY.get(token.text) if token.kind == COMMAND else token.text
                said += (" " if token.space else "") + (token.text if sign is None else sign)
            elif not depth and token.space:
                said += " "
        return said

    def fence(self, token: Token) -> Node:
        left = self._delimiter()
        inside = self._row(frozenset({"\\right"}))
        if _key(self._next) != "\\right":
            raise self._wrong(r"\left has no \right", token)
        self._take()
        return Fence(left, inside, self._delimiter())

    def _delimiter(self) -> str:
        token = self._take()
        sign = names.ORDINARY.get(token.text, "") if token.kind == COMMAND else token.text
        if token.kind == END or (token.kind == COMMAND and not sign):
            raise self._wrong("a delimiter is missing, such as ( or \\{", token)
        return {".": "", "<": "⟨", ">": "⟩"}.get(sign, sign)

    def environment(self, token: Token) -> Node:
        name = self._raw().rstrip("*")
        if name in _GRIDS:
            align = "".join(one for one in self._raw() if one in "lcr") if name == "array" else ""
            left, right = _GRIDS[name]
            align = align or ("l" if name == "cases" else "c")
            found = self._grid(frozenset({"\\end"}), align, left=left, right=right)
        elif name in _ALIGNED or name in _GATHERED:
            is_aligned = name in _ALIGNED
            found = self._grid(frozenset({"\\end"}), "rl" if is_aligned else "c", gap=0)
        else:
            raise self._wrong(
                f"the environment {name[:30]!r} is not known; there are "
                f"{', '.join([*_GRIDS, 'aligned', 'gather'])}",
                token,
            )
        if _key(self._next) != "\\end":
            raise self._wrong(f"\\begin{{{name[:30]}}} has no \\end", token)
        self._take()
        self._raw()
        return found

    def _grid(
        self, ends: frozenset[str], align: str, *, left: str = "", right: str = "", gap: int = 2
    ) -> Grid:
        rows: list[tuple[Node, ...]] = []
        cells: list[Node] = []
        while True:
            cells.append(self._row(ends | {"&", "\\\\", "\\newline"}))
            key = _key(self._next)
            if key == "&":
                self._take()
                continue
            rows.append(tuple(cells))
            cells = []
            if key not in ("\\\\", "\\newline"):
                break
            self._take()
        if len(rows) > 1 and rows[-1] == (Row(()),):
            rows.pop()
        return Grid(tuple(rows), align, left, right, gap)


def _key(token: Token) -> str:
    return "\\" + token.text if token.kind == COMMAND else token.text


def _shown(token: Token) -> str:
    return repr(_key(token)[:20])


def _joined(one: Node | None, two: Node) -> Node:
    return two if one is None else Row((one, two))


def _fitting(sign: str, role: str) -> Symbol:
    if sign in _OPENING:
        return Symbol(sign, "open")
    return Symbol(sign, "close") if sign in _CLOSING else Symbol(sign, role)


def _character(sign: str) -> Symbol:
    if sign in _RELATIONS:
        return Symbol(sign, "relation")
    if sign in _BINARIES:
        return Symbol("−" if sign == "-" else sign, "binary")
    if sign in _OPENING:
        return Symbol(sign, "open")
    if sign in _CLOSING:
        return Symbol(sign, "close")
    if sign in ",;":
        return Symbol(sign, "comma")
    return Symbol(sign if sign.isprintable() else "?")


_CONSTRUCTS: dict[str, Callable[[Parser, Token], Node | None]] = {
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac"), Parser.fraction),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), Parser.binomial),
    **dict.fromkeys(("overset", "stackrel", "underset"), Parser.over),
    "sqrt": Parser.root,
    "left": Parser.fence,
    "begin": Parser.environment,
    "not": Parser.negated,
    "pmod": Parser.modulo,
}
