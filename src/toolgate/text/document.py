"""YAML and JSON as plain values, with the line of everything; hostile text is refused early.

JSON is read by a fast parser, YAML by a careful one. Lines are looked up only when something is
wrong: a good file pays nothing for them.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.text import json_text
from toolgate.text.refusal import Path, Refusal

if TYPE_CHECKING:
    from toolgate.text.yaml_text import Limits

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


def read(
    raw: bytes,
    *,
    is_json: bool = False,
    most: int | None = None,
    limits: "Limits | None" = None,
) -> Text:
    """A YAML or JSON document. Anything odd is a `Refusal` that says where.

    `most` bytes are read, and YAML within `limits`; without them, what a tool file may have.
    """
    return parsed(decoded(raw, most=most), is_json=is_json, limits=limits)


def decoded(raw: bytes, *, most: int | None = None) -> str:
    """The text in these bytes, if they are one."""
    most = MAX_BYTES if most is None else most
    if len(raw) > most:
        raise too_large(len(raw), most=most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Refusal("is not UTF-8 text", "Save it as UTF-8.", line) from None


def parsed(text: str, *, is_json: bool = False, limits: "Limits | None" = None) -> Text:
    """A YAML or JSON text as its value."""
    if is_json or _LIKE_JSON.match(text):
        try:
            return Text(json_text.read(text), json_text.Lines(text))
        except json_text.NotJson:
            # `{tools: [a]}` is no JSON but fine YAML; a file that is called .json has to be JSON.
            if is_json:
                raise
    from toolgate.text import yaml_text  # noqa: PLC0415  a house without YAML starts sooner

    limits = limits or yaml_text.Limits(yaml_text.MAX_BYTES, yaml_text.MAX_VALUES)
    return Text(yaml_text.read(text, limits), yaml_text.Lines(text, limits))


def too_large(size: int, *, most: int = MAX_BYTES) -> Refusal:
    """A file that is not read at all."""
    return Refusal(f"is {size:,} bytes; at most {most:,} are read", "Split it.")
