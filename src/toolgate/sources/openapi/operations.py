"""The operations of a document, each with all that holds for it, in the words of OpenAPI 3."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from toolgate.sources.openapi import older
from toolgate.sources.openapi.opened import Opened
from toolgate.sources.openapi.pointers import Pointers, Unresolved
from toolgate.sources.openapi.prose import printable

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class Operation(NamedTuple):
    """One method of one path; nothing of it is resolved yet."""

    method: str
    path: str
    fields: dict[str, Any]
    # The path's own fields, which hold for all its methods.
    shared: dict[str, Any]

    @property
    def shown(self) -> str:
        return f"{self.method.upper()} {printable(self.path)}"

    @property
    def id(self) -> str:
        found = self.fields.get("operationId")
        return found if isinstance(found, str) else ""

    @property
    def tags(self) -> list[str]:
        found = self.fields.get("tags")
        listed = cast("list[Any]", found) if isinstance(found, list) else []
        return list(dict.fromkeys(one for one in listed if isinstance(one, str)))

    @property
    def is_deprecated(self) -> bool:
        return self.fields.get("deprecated") is True


class Request(NamedTuple):
    """What an operation is sent and what it gives, resolved."""

    parameters: list[dict[str, Any]]
    body: dict[str, Any] | None
    responses: dict[str, Any]


class Broken(NamedTuple):
    """A path that cannot be read."""

    path: str
    reason: str


def operations(document: dict[str, Any], pointers: Pointers) -> Iterator[Operation | Broken]:
    """All of them, in the order of the document."""
    paths = document.get("paths")
    for path, given in cast("dict[str, Any]", paths if isinstance(paths, dict) else {}).items():
        if path.startswith("x-"):
            continue
        try:
            item = pointers.follow(given)
        except Unresolved as problem:
            yield Broken(printable(path), str(problem))
            continue
        for method in METHODS:
            if method not in item:
                continue
            fields = item[method]
            if isinstance(fields, dict):
                yield Operation(method, path, cast("dict[str, Any]", fields), item)
            else:
                yield Broken(f"{method.upper()} {printable(path)}", "is not an object")


class Requests:
    """Resolves what operations refer to."""

    def __init__(self, opened: Opened, pointers: Pointers) -> None:
        self._document = opened.value
        self._is_old = opened.version == "2.0"
        self._pointers = pointers

    def of(self, operation: Operation) -> Request:
        """An operation's request, or `Unresolved`."""
        given = self._parameters(operation)
        responses = operation.fields.get("responses")
        answers = cast("dict[str, Any]", responses) if isinstance(responses, dict) else {}
        if not self._is_old:
            body = operation.fields.get("requestBody")
            sent = None if body is None else self._pointers.follow(body)
            return Request(given, sent, answers)
        plain = [one for one in given if one.get("in") not in {"body", "formData"}]
        consumes = operation.fields.get("consumes", self._document.get("consumes"))
        body = older.body(given, consumes)
        return Request([older.parameter(one) for one in plain], body, answers)

    def response(self, operation: Operation, given: Any) -> dict[str, Any]:
        """A response with its content, or `Unresolved`."""
        found = self._pointers.follow(given)
        if not self._is_old:
            return found
        produces = operation.fields.get("produces", self._document.get("produces"))
        return older.content(found, produces)

    def _parameters(self, operation: Operation) -> list[dict[str, Any]]:
        """Those of the path, and those of the operation, which replace them by name and place."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for holder in (operation.shared, operation.fields):
            listed: Any = holder.get("parameters") or []
            if not isinstance(listed, list):
                raise Unresolved("has parameters that are no list")
            for given in cast("list[Any]", listed):
                one = self._pointers.follow(given)
                name, place = one.get("name"), one.get("in")
                if not isinstance(name, str) or not isinstance(place, str) or not name:
                    raise Unresolved("has a parameter without a name or a place")
                found[name, place] = one
        return list(found.values())
