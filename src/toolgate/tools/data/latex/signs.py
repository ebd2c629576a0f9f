"""Signs that grow: brackets, roots, sums and integrals, in Unicode and in ASCII."""

from typing import NamedTuple

from toolgate.tools.data.latex.box import Box, block, line, stacked


class Growing(NamedTuple):
    """The pieces of a bracket: its top, middle, bottom, and what fills the rest."""

    top: str
    fill: str
    bottom: str
    middle: str = ""


_UNICODE = {
    "(": Growing("⎛", "⎜", "⎝"),
    ")": Growing("⎞", "⎟", "⎠"),
    "[": Growing("⎡", "⎢", "⎣"),
    "]": Growing("⎤", "⎥", "⎦"),
    "{": Growing("⎧", "⎪", "⎩", "⎨"),
    "}": Growing("⎫", "⎪", "⎭", "⎬"),
    "⌊": Growing("⎢", "⎢", "⎣"),
    "⌋": Growing("⎥", "⎥", "⎦"),
    "⌈": Growing("⎡", "⎢", "⎢"),
    "⌉": Growing("⎤", "⎥", "⎥"),
    "|": Growing("│", "│", "│"),
    "∣": Growing("│", "│", "│"),
    "‖": Growing("║", "║", "║"),
    "⟨": Growing("╱", "│", "╲"),
    "⟩": Growing("╲", "│", "╱"),
}
_ASCII = {
    "(": Growing("/", "|", "\\"),
    ")": Growing("\\", "|", "/"),
    "[": Growing("[", "[", "["),
    "]": Growing("]", "]", "]"),
    "{": Growing("/", "|", "\\", "<"),
    "}": Growing("\\", "|", "/", ">"),
    "⟨": Growing("/", "|", "\\"),
    "⟩": Growing("\\", "|", "/"),
    "‖": Growing("||", "||", "||"),
}
_LARGE_ASCII = {
    "∑": ("---", "\\  ", "/  ", "---"),
    "∏": ("-----", " | | ", " | | "),
    "∫": (" /", "|", "/ "),
    "∬": (" / /", "| |", "/ /"),
    "∭": (" / / /", "| | |", "/ / /"),
    "∮": (" /", "O", "/"),
}
_LINE_ASCII = {
    "⋃": "U", "⋂": "n", "⋁": "V", "⋀": "^", "∐": "|_|", "⨁": "(+)", "⨂": "(x)", "⨆": "|_|",
}  # fmt: skip


def bracket(sign: str, height: int, base: int, *, ascii_: bool) -> Box:
    """One that is as high as what it stands beside."""
    if not sign:
        return line("")
    if height == 1:
        return line({"‖": "||", "⟨": "<", "⟩": ">"}.get(sign, sign) if ascii_ else sign)
    pieces = (_ASCII if ascii_ else _UNICODE).get(sign, Growing(sign, sign, sign))
    if ascii_ and sign in "⌊⌋⌈⌉":
        pieces = Growing("|", "|", "|")
    rows = [pieces.top, *[pieces.fill] * (height - 2), pieces.bottom]
    if pieces.middle and height > 2:
        rows[height // 2] = pieces.middle
    elif pieces.middle:
        rows = [pieces.top, pieces.bottom]
    return block(rows, base)


def root(inside: Box, degree: Box | None, *, ascii_: bool) -> Box:
    """The sign, with its roof."""
    height = inside.height
    if ascii_:
        rows = [" " * (height + 1) + "_" * (inside.width + 2)]
        for number, cells in enumerate(inside.rows):
            slope = " " * (height - number) + "/" + " " * (number + 1)
            if number == height - 1:
                slope = "\\/" + " " * height
            rows.append(slope + "".join(cells) + " ")
    else:
        rows = [" ┌" + "─" * inside.width]
        rows += [" │" + "".join(cells) for cells in inside.rows]
        rows[-1] = "√" + rows[-1][1:]
    found = block(rows, inside.base + 1)
    if degree is None:
        return found
    # It stands in front of the sign, a line above.
    return _before(degree, found)


def _before(degree: Box, sign: Box) -> Box:
    first = sign.height - 1 - degree.height
    rows: list[list[str]] = []
    for number in range(min(first, 0), sign.height):
        at = number - first
        left = degree.rows[at] if 0 <= at < degree.height else [" "] * degree.width
        right = sign.rows[number] if number >= 0 else [" "] * sign.width
        rows.append([*left, *right])
    return Box(tuple(rows), sign.base - min(first, 0))


def large(sign: str, *, ascii_: bool, tall: bool) -> Box:
    """A sum, an integral and their like."""
    if ascii_ and sign in _LARGE_ASCII:
        rows = _LARGE_ASCII[sign]
        return block(rows, len(rows) // 2)
    if sign == "∫" and tall:
        return block(("⌠", "⎮", "⌡"), 1)
    return line(_LINE_ASCII.get(sign, sign) if ascii_ else sign)


def limited(sign: Box, above: Box | None, below: Box | None) -> Box:
    """With what stands above and below."""
    parts = [one for one in (above, sign, below) if one is not None]
    return stacked(parts, sign.base + (above.height if above else 0))
