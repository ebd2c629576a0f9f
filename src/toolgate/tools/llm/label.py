"""A label that texts are sorted under, and what is said of it."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from toolgate.errors import ToolError

_JOINED = re.compile(r"[_\-]+")


class Label(msgspec.Struct, frozen=True):
    """Its name as it was given, and the sentences that it is compared by."""

    name: str
    sentences: tuple[str, ...]
    # Whether anything is said of it beside its name.
    is_described: bool = False


def labels_of(given: Sequence[Any]) -> list[Label]:
    """As a caller writes them: plain names, or with a description and examples."""
    found = [_label({"name": one} if isinstance(one, str) else one) for one in given]
    if len({label.name for label in found}) < len(found):
        raise ToolError("Two labels have the same name. Give each a name of its own.")
    return found


def _label(given: dict[str, Any]) -> Label:
    name = given["name"].strip()
    if not name:
        raise ToolError("A label has an empty name. Give it one, such as 'complaint'.")
    about = given.get("description", "").strip()
    words = _JOINED.sub(" ", name)
    first = f"{words}: {about}" if about else words
    examples = [one for one in given.get("examples", ()) if one.strip()]
    return Label(name, (first, *examples), is_described=bool(about or examples))
