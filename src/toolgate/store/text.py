"""Text that every server takes. A tool's words can hold what UTF-8 or PostgreSQL cannot."""

from typing import Any


def storable(text: str) -> str:
    """The same text; lone surrogates and NUL are written as their escapes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def storable_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with `storable` texts. Nearly always all are: one look at them together tells."""
    together = "".join([part for part in row if type(part) is str])
    if together.isascii() and "\0" not in together:
        return row
    return tuple([storable(part) if type(part) is str else part for part in row])
