"""Words of LaTeX: commands, braces, scripts and single characters."""

import re
from typing import NamedTuple

COMMAND, CHARACTER, END = "command", "character", "end"
_WORD = re.compile(
    r"%[^\n]*\n?"
    r"|(?P<space>\s+)"
    r"|\\(?P<command>[a-zA-Z]+\*?|.)"
    r"|(?P<character>.)",
    re.DOTALL,
)
# What formulas stand between in a text.
_AROUND = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))


class Token(NamedTuple):
    """`space` tells whether white space stands before it."""

    kind: str
    text: str
    at: int
    space: bool = False


def bare(text: str) -> str:
    """A formula without the signs that it stands between."""
    text = text.strip()
    for begin, end in _AROUND:
        if text.startswith(begin) and text.endswith(end) and len(text) >= len(begin) + len(end):
            return text[len(begin) : len(text) - len(end)].strip()
    return text


def words(text: str) -> list[Token]:
    """All of them, and the end."""
    found: list[Token] = []
    is_apart = False
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            is_apart = True
        elif kind is not None:
            found.append(Token(kind, match[kind], match.start(), is_apart))
            is_apart = False
    found.append(Token(END, "", len(text)))
    return found
