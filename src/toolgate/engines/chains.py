"""Expressions that a parser would go too deep for, without any brackets: `1 + 1 + 1 + …`.

Each further part stands one level below the one before it, and a stack that ends takes the process
with it. So links are counted before a parser sees them: operators, dots, and brackets that follow
a value.
"""

import re

MAX_LINKS = 50
_TOKEN = re.compile(
    r'#[^\n]*|"(?:[^"\\\n]|\\.)*"|`[^`]*`|[\[({]|[\])}]|[,;]|\.|:=|[=!<>]=|[-+*/%|&<>=:]|\n|\w+'
)
_WORDS = frozenset({"in", "with"})


def refusal(text: str) -> str:
    """Why this text is not parsed, as `LINE: message`; empty where it may be."""
    line, counts = 1, [0]
    # Whether a value has ended, and whether a line has since: then the next value is a statement.
    value = ended = False
    for found in _TOKEN.finditer(text):
        token = found[0]
        first = token[0]
        if first == "\n":
            line, ended = line + 1, value
            continue
        if first == "#":
            continue
        link = token in _WORDS or not (first.isalnum() or first in '_"`,;[](){}')
        if first in ",;" or (ended and not link and first not in "[])}"):
            counts[-1] = 0
        counts[-1] += link or first == "["
        if counts[-1] > MAX_LINKS:
            return (
                f"{line}: more than {MAX_LINKS} operators and dots stand in one expression. "
                "Give its parts names, or put what they hold into data."
            )
        if first in "[({":
            counts.append(0)
        elif first in "])}" and len(counts) > 1:
            counts.pop()
        value, ended = not (link or first in ",;[({"), False
        line += token.count("\n")
    return ""
