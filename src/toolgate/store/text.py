"""Text that every server takes. A tool's words can hold what UTF-8 or PostgreSQL cannot."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

_encode = msgspec.json.Encoder().encode


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


def json_text(value: Any) -> str:
    """JSON that every server takes, whatever the texts in it are."""
    try:
        return storable(_encode(value).decode())
    except UnicodeEncodeError:
        # A lone surrogate, which JSON has no bytes for.
        return _encode(_parts(msgspec.to_builtins(value))).decode()


def _parts(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        parts = cast("dict[Any, Any]", value)
        return {_parts(name): _parts(of) for name, of in parts.items()}
    if isinstance(value, (list, tuple)):
        return [_parts(of) for of in cast("Sequence[Any]", value)]
    return value
