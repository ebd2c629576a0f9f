"""Formulas as boxes: each kind of part has a way to be laid out."""

import unicodedata
from collections.abc import Callable
from typing import Any

from toolgate.tools.data.latex import names
from toolgate.tools.data.latex.alphabets import lowered, raised
from toolgate.tools.data.latex.box import Box, beside, block, line, padded, stacked
from toolgate.tools.data.latex.signs import bracket, large, limited, root
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

_INTEGRALS = "∫∬∭∮"
_UNDER = "\u0332"


class Layout:
    """In Unicode, or in ASCII."""

    def __init__(self, *, ascii_: bool) -> None:
        self._ascii = ascii_
        # Scripts are set without spaces.
        self._scripts = 0

    def box(self, node: Node) -> Box:
        """What a part takes up."""
        return _WAYS[type(node)](self, node)

    def symbol(self, node: Symbol) -> Box:
        return line(self._plain(node.text) if self._ascii else node.text)

    def row(self, node: Row) -> Box:
        boxes: list[Box] = []
        before: str | None = None
        for part in node.parts:
            role = self._role(part)
            if role == "binary" and before in (None, "binary", "relation", "open", "comma"):
                # A sign, which belongs to what follows.
                role = "sign"
            if before is not None and _are_apart(before, role, is_tight=self._scripts > 0):
                boxes.append(line(" "))
            boxes.append(self.box(part))
            before = role
        return beside(boxes)

    def scripts(self, node: Scripts) -> Box:
        self._scripts += 1
        above = None if node.above is None else self.box(node.above)
        below = None if node.below is None else self.box(node.below)
        self._scripts -= 1
        if isinstance(node.base, Operator):
            return self._limits(node.base, above, below)
        if isinstance(node.base, Accent) and node.base.mark in "⏞⏟":
            return limited(self.box(node.base), above, below)
        base = self.box(node.base)
        small = self._small(base, above, below)
        if small is not None:
            return beside([base, line(small)])
        return _scripted(base, above, below)

    def fraction(self, node: Fraction) -> Box:
        top, bottom = self.box(node.top), self.box(node.bottom)
        if not node.bar:
            return stacked([top, bottom], top.height if top.height > 1 else 0)
        width = max(top.width, bottom.width) + (
            2 if self._is_bar(top) or self._is_bar(bottom) else 0
        )
        bar = line(("-" if self._ascii else "─") * max(width, 1))
        return stacked([top, bar, bottom], top.height)

    def root(self, node: Root) -> Box:
        degree = None if node.degree is None else self.box(node.degree)
        if degree is not None and degree.height == 1 and not self._ascii:
            small = raised("".join(degree.rows[0]))
            degree = degree if small is None else line(small)
            if small is not None:
                inside = root(self.box(node.inside), None, ascii_=False)
                return _in_front(line(small), inside)
        return root(self.box(node.inside), degree, ascii_=self._ascii)

    def fence(self, node: Fence) -> Box:
        inside = self.box(node.inside)
        left, right = (
            bracket(sign, inside.height, inside.base, ascii_=self._ascii)
            for sign in (node.left, node.right)
        )
        return beside([left, inside, right])

    def operator(self, node: Operator) -> Box:
        return self._limits(node, None, None)

    def accent(self, node: Accent) -> Box:
        inside, mark = self.box(node.inside), node.mark
        if mark == "□":
            return self._boxed(inside)
        if mark in "⏞⏟":
            return self._braced(inside, is_over=mark == "⏞")
        if (
            not self._ascii
            and inside.height == 1
            and (inside.width == 1 or mark in "\u0305\u0332\u0338")
        ):
            return Box(([one + mark if one else one for one in inside.rows[0]],))
        if mark == _UNDER:
            return stacked(
                [inside, line(("-" if self._ascii else "‾") * inside.width)], inside.base
            )
        roof = line(self._roof(mark, inside.width))
        return stacked([roof, inside], inside.base + 1)

    def grid(self, node: Grid) -> Box:
        columns = max(map(len, node.rows))
        cells = [[self.box(one) for one in row] for row in node.rows]
        for row in cells:
            row.extend([line("")] * (columns - len(row)))
        widths = [max(row[at].width for row in cells) for at in range(columns)]
        lines: list[Box] = []
        is_high = any(one.height > 1 for row in cells for one in row)
        for row in cells:
            parts: list[Box] = []
            for at, one in enumerate(row):
                if at:
                    parts.append(line(" " * self._gap(node, at)))
                parts.append(padded(one, widths[at], node.align[at % len(node.align)]))
            if lines and is_high:
                lines.append(line(" "))
            lines.append(beside(parts))
        total = sum(one.height for one in lines)
        base = lines[0].base if len(lines) == 1 else (total - 1) // 2
        inside = stacked(lines, base, "l")
        if not node.left and not node.right:
            return inside
        sides = [bracket(one, total, base, ascii_=self._ascii) for one in (node.left, node.right)]
        gap = [line(" ")] if node.left == "{" else []
        return beside([sides[0], *gap, inside, sides[1]])

    def _gap(self, node: Grid, at: int) -> int:
        """Aligned formulas come in pairs, with room between them."""
        return node.gap or (1 if at % 2 else 3)

    def _limits(self, node: Operator, above: Box | None, below: Box | None) -> Box:
        sign = names.LARGE.get(node.name)
        if sign is None:
            return limited(line(node.name), above, below)
        found = large(sign, ascii_=self._ascii, tall=above is not None or below is not None)
        return limited(found, above, below)

    def _small(self, base: Box, above: Box | None, below: Box | None) -> str | None:
        """Both scripts in small letters on the line, where that can be."""
        if self._ascii or base.height > 1:
            return None
        found = ""
        for box, small in ((below, lowered), (above, raised)):
            if box is not None:
                said = small("".join(box.rows[0])) if box.height == 1 else None
                if said is None:
                    return None
                found += said
        return found

    def _is_bar(self, box: Box) -> bool:
        """Whether its own bar would be taken for the one of the fraction around it."""
        return any(row and row[0] in "─-" and row[-1] in "─-" for row in box.rows)

    def _boxed(self, inside: Box) -> Box:
        corners = "++++" if self._ascii else "┌┐└┘"
        level, upright = ("-", "|") if self._ascii else ("─", "│")
        rows = [corners[0] + level * (inside.width + 2) + corners[1]]
        rows += [f"{upright} {''.join(row)} {upright}" for row in inside.rows]
        rows.append(corners[2] + level * (inside.width + 2) + corners[3])
        return block(rows, inside.base + 1)

    def _braced(self, inside: Box, *, is_over: bool) -> Box:
        left, level, middle, right = ("/", "-", "^", "\\") if is_over else ("\\", "-", "v", "/")
        if not self._ascii:
            left, level, middle, right = "╭─┴╮" if is_over else "╰─┬╯"
        width = max(inside.width, 3)
        half = (width - 3) // 2
        brace = line(left + level * half + middle + level * (width - 3 - half) + right)
        parts = [brace, inside] if is_over else [inside, brace]
        return stacked(parts, inside.base + (1 if is_over else 0))

    def _roof(self, mark: str, width: int) -> str:
        if mark == "\u20d7":
            return ("-" if self._ascii else "─") * (width - 1) + (">" if self._ascii else "→")
        signs = {"\u0302": "^", "\u0303": "~", "\u0307": ".", "\u0308": "..", "\u030c": "v"}
        return signs.get(mark, "_" * width)

    def _role(self, node: Node) -> str:
        if isinstance(node, Symbol):
            plain = self._plain(node.text) if self._ascii else ""
            # A sign that has become a word keeps apart like one.
            return "function" if plain != node.text and plain[1:].isalpha() else node.role
        if isinstance(node, Scripts):
            return self._role(node.base)
        if isinstance(node, Operator):
            return "operator"
        return "fraction" if isinstance(node, Fraction) else "ordinary"

    def _plain(self, text: str) -> str:
        found = ""
        for sign in text:
            plain = names.PLAIN.get(sign, sign)
            if not plain.isascii():
                folded = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
                plain = folded or names.WORDS.get(plain, "?")
            found += plain
        return found


def _scripted(base: Box, above: Box | None, below: Box | None) -> Box:
    """Beside its end, a line higher and a line lower."""
    width = max(one.width for one in (above, below) if one is not None)
    rows: list[Box] = []
    if above is not None:
        rows.append(padded(above, width, "l"))
    rows.append(Box(tuple([" "] * width for _ in range(base.height))))
    if below is not None:
        rows.append(padded(below, width, "l"))
    first = above.height if above is not None else 0
    column = stacked(rows, first + base.base, "l")
    return beside([base, column])


def _in_front(small: Box, sign: Box) -> Box:
    """A small degree stands on the line of the root's own sign."""
    rows = [[" "] * small.width for _ in range(sign.height)]
    rows[-1] = [*small.rows[0]]
    return beside([Box(tuple(rows), sign.base), sign])


def _are_apart(one: str, two: str, *, is_tight: bool) -> bool:
    if "space" in (one, two) or two in ("comma", "close"):
        return False
    if is_tight and not {one, two} & {"function", "operator"}:
        return False
    if one == "sign" and two == "fraction":
        return True
    if one in ("binary", "relation", "comma") or two in ("binary", "relation"):
        return True
    if one in ("function", "operator"):
        return two != "open" or one == "operator"
    if one == "fraction" and two == "fraction":
        return True
    return two in ("function", "operator") and one not in ("open", "sign")


_WAYS: dict[type, Callable[[Layout, Any], Box]] = {
    Symbol: Layout.symbol,
    Row: Layout.row,
    Scripts: Layout.scripts,
    Fraction: Layout.fraction,
    Root: Layout.root,
    Fence: Layout.fence,
    Operator: Layout.operator,
    Accent: Layout.accent,
    Grid: Layout.grid,
}
