"""What is refused before a parser sees it: its time doubles with every level of brackets."""

import re
from collections.abc import Iterator

from toolgate.engines import chains

MAX_BYTES = 256 * 1024
MAX_DEPTH = 8
# Comments, texts and raw texts hold no structure; a text that does not end is the parser's to tell.
_TOKEN = re.compile(r'#[^\n]*|"(?:[^"\\\n]|\\.)*"|`[^`]*`|[\[\](){}]|\n')
_OPEN, _CLOSE = frozenset("[({"), frozenset("])}")


def refusal(text: str) -> str:
    """Why this text is not parsed, as `LINE: message`; empty where it may be."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "1: it is not UTF-8 text."
    if size > MAX_BYTES:
        return f"1: it has {size:,} bytes; at most {MAX_BYTES:,} are read. Split it."
    for line, depth in _depths(text):
        if depth > MAX_DEPTH:
            return (
                f"{line}: brackets stand more than {MAX_DEPTH} deep. "
                "Move the inner part to a rule of its own, or to data."
            )
    return chains.refusal(text)


def _depths(text: str) -> Iterator[tuple[int, int]]:
    line, depth = 1, 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in _OPEN:
            depth += 1
            yield line, depth
        elif token in _CLOSE:
            depth = max(0, depth - 1)
        else:
            line += token.count("\n")
