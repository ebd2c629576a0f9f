"""Arguments of one tool made from another's call, as data: `$args.NAME`, `$result.NAME`, `$key`."""

from collections.abc import Mapping
from typing import Any, cast


class UnmappedError(Exception):
    """A reference points to nothing."""


def filled(template: object, known: Mapping[str, object]) -> Any:
    """The template with every reference replaced; a reference to nothing is an `UnmappedError`."""
    if isinstance(template, str):
        return _at(template, known) if template.startswith("$") else template
    if isinstance(template, dict):
        fields = cast("dict[str, object]", template)
        return {name: filled(of, known) for name, of in fields.items()}
    if isinstance(template, list):
        return [filled(of, known) for of in cast("list[object]", template)]
    return template


def found(value: object, path: str) -> object:
    """What stands at a dotted path; `UnmappedError` where there is nothing."""
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = cast("dict[str, object]", value)[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):  # pyright: ignore[reportUnknownArgumentType]
            value = cast("list[object]", value)[int(part)]
        else:
            raise UnmappedError(path)
    return value


def _at(reference: str, known: Mapping[str, object]) -> object:
    root, _, path = reference[1:].partition(".")
    if root not in known:
        raise UnmappedError(reference)
    return found(known[root], path) if path else known[root]
