"""Examples that stand beside a schema: those of a parameter, and of a media type."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolgate.sources.openapi.keywords import is_small
from toolgate.sources.openapi.pointers import Pointers, Unresolved

_MOST = 3
# A document may list any number of them; what is beyond these is not looked at.
_LOOKED_AT = 50


def examples_of(holder: Any, pointers: Pointers) -> list[Any]:
    """The values that a parameter or a media type shows, as they are."""
    fields = cast("dict[str, Any]", holder) if isinstance(holder, dict) else {}
    found = [fields["example"]] if fields.get("example") is not None else []
    named = fields.get("examples")
    listed = cast("dict[str, Any]", named).values() if isinstance(named, dict) else ()
    for _, one in zip(range(_LOOKED_AT), listed, strict=False):
        try:
            # What lies at another address (`externalValue`) is never fetched.
            found += [value] if (value := pointers.follow(one).get("value")) is not None else []
        except Unresolved:
            continue
    return found


def field_of(examples: Iterable[Any], name: str) -> list[Any]:
    """What those of a whole body show of one of its fields."""
    objects = (cast("dict[str, Any]", one) for one in examples if isinstance(one, dict))
    return [one[name] for one in objects if one.get(name) is not None]


def shown(schema: Mapping[str, Any], examples: Iterable[Any]) -> dict[str, Any]:
    """The schema with them in place of its own: a few, and together no more than a little."""
    kept: list[Any] = []
    for one in examples:
        if len(kept) < _MOST and one not in kept and is_small([*kept, one]):
            kept.append(one)
    return {**schema, "examples": kept} if kept else dict(schema)
