"""Names that the document gives, as tools, arguments and definitions may be called."""

import hashlib
import re
from collections.abc import Callable

from toolgate.spec.names import MAX_LENGTH, is_name

# A colon sets apart where a tool comes from, which no document says of itself.
_NOT_OURS = re.compile(r"[^A-Za-z0-9_./-]+")
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
# What every model's API takes as the name of an argument.
_NOT_AN_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]+")
_ARGUMENT_LENGTH = 64
_SLUG_LENGTH = 40


class Unique:
    """Gives each name once; a second one gets a number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        name = _bounded(name, self._most)
        if name not in self._taken:
            self._taken.add(name)
            return name
        # Where the last one of this name left off: thousands can be called alike.
        number = self._next.get(name, 2)
        while (taken := _bounded(name, self._most - 8) + f"_{number}") in self._taken:
            number += 1
        self._next[name] = number + 1
        self._taken.add(taken)
        return taken

    def has(self, name: str) -> bool:
        return name in self._taken


def tool_names(prefix: str) -> Callable[[str, str, str], str]:
    """What gives operations their names: by operationId, else by method and path."""
    taken = Unique(MAX_LENGTH)

    def name(operation_id: str, method: str, path: str) -> str:
        stem = _NOT_OURS.sub("_", operation_id).strip("_./-")
        if not stem:
            words = _NOT_A_WORD.sub("_", path).strip("_")
            stem = f"{method}_{words}" if words else method
        found = prefix + stem
        return taken.take(found if is_name(found[:MAX_LENGTH]) else f"_{found}")

    return name


def argument(name: str) -> str:
    """An argument's name; what a model cannot write is left out."""
    found = _NOT_AN_ARGUMENT.sub("_", name).strip("_")
    return _bounded(found, _ARGUMENT_LENGTH) or "value"


def slug(text: str, most: int = _SLUG_LENGTH) -> str:
    """A short word in small letters: of a file, or of a secret."""
    return _NOT_A_WORD.sub("_", text).strip("_").lower()[:most].strip("_")


def _bounded(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{name[: most - 9]}_{digest}"
