"""References inside of a document. What points elsewhere is never followed."""

from typing import Any, cast
from urllib.parse import unquote

from toolgate.sources.openapi.prose import printable
from toolgate.spec.bounds import escaped

_MAX_HOPS = 16
Pointer = tuple[str, ...]


class Unresolved(Exception):
    """A reference that leads nowhere, or out of the document."""


class Pointers:
    """Looks references up; each is looked up once."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._found: dict[str, tuple[Pointer, Any]] = {}

    def follow(self, node: Any) -> dict[str, Any]:
        """An object, behind as many references as there are."""
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict):
                raise Unresolved("is not an object where one has to be")
            fields = cast("dict[str, Any]", node)
            if not isinstance(fields.get("$ref"), str):
                return fields
            node = self.at(fields["$ref"])[1]
        raise Unresolved("leads from reference to reference without an end")

    def at(self, reference: str) -> tuple[Pointer, Any]:
        """Where a reference points, and what is there."""
        known = self._found.get(reference)
        if known is None:
            known = self._found[reference] = self._look(reference)
        return known

    def _look(self, reference: str) -> tuple[Pointer, Any]:
        shown = printable(reference)
        if not reference.startswith("#"):
            raise Unresolved(
                f"refers outside of the document ({shown!r}), which is never fetched; bundle it "
                "into one document"
            )
        if not reference.startswith("#/"):
            raise Unresolved(f"refers to {shown!r}, which is no place in the document")
        parts = tuple(
            unquote(part).replace("~1", "/").replace("~0", "~")
            for part in reference[1:].split("/")[1:]
        )
        node: Any = self._document
        for part in parts:
            node = _member(node, part)
            if node is None:
                raise Unresolved(f"refers to {shown!r}, which is not in the document")
        return parts, node


def _member(node: Any, part: str) -> Any:
    if isinstance(node, dict):
        return cast("dict[str, Any]", node).get(part)
    if isinstance(node, list) and part.isdecimal() and len(part) < 7:
        items = cast("list[Any]", node)
        return items[int(part)] if int(part) < len(items) else None
    return None


def written(pointer: Pointer) -> str:
    """A pointer as messages show it."""
    return printable("#/" + "/".join(escaped(part) for part in pointer))
