"""Tool documents that stay in the engine: a list names them, instead of sending them each time."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.gate.document import tool_document
from toolgate.spec.tool import ToolSpec

# Beyond this many, specs have come and gone: the shelf is filled anew with those asked about.
_MOST = 50_000


class Shelf:
    """Documents by key. Two specs that are not the same object have two keys."""

    def __init__(self) -> None:
        # The spec is kept, so that its id is not given to another one meanwhile.
        self._keys: dict[int, tuple[ToolSpec, str]] = {}
        self._documents: dict[str, dict[str, Any]] = {}

    def keys_of(self, specs: Sequence[ToolSpec]) -> tuple[dict[str, str], bool]:
        """Keys by name, and whether the documents have changed."""
        new = [spec for spec in specs if id(spec) not in self._keys]
        if len(self._keys) + len(new) > _MOST:
            self._keys.clear()
            self._documents.clear()
            new = list(specs)
        for spec in new:
            key = str(len(self._keys))
            self._keys[id(spec)] = (spec, key)
            self._documents[key] = tool_document(spec)
        return {spec.name: self._keys[id(spec)][1] for spec in specs}, bool(new)

    @property
    def documents(self) -> Mapping[str, dict[str, Any]]:
        """What the engine is to hold."""
        return self._documents
