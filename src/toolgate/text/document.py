"""YAML and JSON as plain values, with the line of everything; hostile text is refused early.

JSON is read by a fast parser, YAML by a careful one. Lines are looked up only when something is
wrong: a good file pays nothing for them.
"""

import re
from collections.abc import Callable
from typing import Any

from toolgate.text import json_text, yaml_text
from toolgate.text.refusal import Path, Refusal

MAX_BYTES = 8 * 1024 * 1024
_LIKE_JSON = re.compile(r"\s*[\[{]")


class Text:
    """A parsed document: its value, and where each part stands."""

    def __init__(self, value: Any, find: Callable[[Path], int | None]) -> None:
        self.value = value
        self._find = find

    def line_of(self, path: Path) -> int | None:
        """The line of this part, or of the nearest one around it."""
        return self._find(path)


def read(raw: bytes, *, is_json: bool = False) -> Text:
    """A YAML or JSON document. Anything odd is a `Refusal` that says where."""
    return _parsed(_decoded(raw), strict=is_json)


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise too_large(len(raw))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Refusal("is not UTF-8 text", "Save it as UTF-8.", line) from None


def _parsed(text: str, *, strict: bool) -> Text:
    if strict or _LIKE_JSON.match(text):
        try:
            return Text(json_text.read(text), json_text.Lines(text))
        except json_text.NotJson:
            # `{tools: [a]}` is no JSON but fine YAML; a file that is called .json has to be JSON.
            if strict:
                raise
    return Text(yaml_text.read(text), yaml_text.Lines(text))


def too_large(size: int) -> Refusal:
    """A file that is not read at all."""
    return Refusal(f"is {size:,} bytes; at most {MAX_BYTES:,} are read", "Split it.")
