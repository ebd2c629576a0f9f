"""A tool as its server defines it: what of that is pinned, and how two of them differ."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolgate.spec.document import canonical, sha256
from toolgate.upstreams.suspicion import shown

Json = dict[str, Any]
# What a model reads, and what a client makes of it. Icons and `_meta` steer nobody.
FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
# What stands in these is a value, whose order can mean something.
_VALUES = frozenset({"default", "const", "enum", "examples"})
_MOST_SHOWN = 600
_MOST_LINES = 200


def pinned(definition: Mapping[str, Any]) -> Json:
    """What of a definition an operator agrees to, in one order."""
    return {
        field: _ordered(definition[field])
        for field in FIELDS
        if definition.get(field) not in (None, {}, "")
    }


def fingerprint(definition: Mapping[str, Any]) -> str:
    """SHA-256 of what is pinned: the same for two that differ in their order only."""
    return sha256(canonical(pinned(definition)))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A line for each place in which they differ, in characters that anybody sees."""
    lines = list(_changes("", pinned(before), pinned(after)))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES:,} more"]
    return lines


def described(definition: Mapping[str, Any]) -> list[str]:
    """All of a definition that is new, line by line."""
    return differences({}, definition)


def _ordered(value: Any, within: str = "") -> Any:
    """`required` names a set, in whichever order; dictionaries are sorted when they are written."""
    if within in _VALUES:
        return value
    if isinstance(value, dict):
        fields = cast("Json", value)
        # Under `properties` stand names of arguments, which may be any of these words.
        if within == "properties":
            return {key: _ordered(one) for key, one in fields.items()}
        return {key: _ordered(one, key) for key, one in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if within == "required" and all(isinstance(one, str) for one in items):
            return sorted(items)
        return [_ordered(one) for one in items]
    return value


def _changes(place: str, before: Any, after: Any) -> Iterator[str]:
    # As they are written: to Python 1, 1.0 and true are one value, and to a fingerprint three.
    if canonical(before) == canonical(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("Json", before), cast("Json", after)
        for key in [*old, *(one for one in new if one not in old)]:
            inner = f"{place}.{shown(key)}" if place else shown(key)
            if key not in new:
                yield f"- {inner}: {_text(old[key])}"
            elif key not in old:
                yield from _added(inner, new[key])
            else:
                yield from _changes(inner, old[key], new[key])
        return
    yield f"- {place}: {_text(before)}"
    yield f"+ {place}: {_text(after)}"


def _added(place: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, one in cast("Json", value).items():
            yield from _added(f"{place}.{shown(key)}", one)
        return
    yield f"+ {place}: {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{shown(value, _MOST_SHOWN)}"'
    return shown(canonical(value).decode(), _MOST_SHOWN)
