"""The settings as a tree of keys: what may stand where, by its path."""

from collections.abc import Mapping
from typing import Any, cast, get_args, get_origin

from toolgate.settings.part import Part
from toolgate.settings.settings import SECTIONS, Settings

Path = tuple[str, ...]


def inside(path: Path) -> Any:
    """What the keys below a path are: those of a part of the settings, by its class; `str` where
    anything may be named; `None` where there are none.
    """
    kind: Any = Settings
    for name in path:
        kind = _holds(kind, name)
    if get_origin(kind) is Mapping:
        return str if get_args(kind)[1] is str else kind
    return kind if _is_part(kind) else None


def is_setting(path: Path) -> bool:
    """Whether there is such a key."""
    return len(path) > 1 and (
        inside(path[:-1]) is str or _holds(inside(path[:-1]), path[-1]) is not None
    )


def default(path: Path) -> Any:
    """What a key is without being written; a text where there is nothing."""
    part = inside(path[:-1])
    return part.model_fields[path[-1]].default if _is_part(part) else ""


def nearest(path: Path) -> tuple[str, Mapping[str, Any]]:
    """Of a path that is no setting: the name that leads nowhere, and those that it could be."""
    depth = next(at for at in range(2, len(path) + 1) if not is_setting(path[:at]))
    if _is_part(inside(path[: depth - 1])):
        return path[depth - 1], inside(path[: depth - 1]).model_fields
    # There is nothing below the key before it.
    above = inside(path[: depth - 2])
    return path[depth - 2], above.model_fields if _is_part(above) else {}


def _holds(kind: Any, name: str) -> Any:
    if kind is Settings and name not in SECTIONS:
        return None
    if get_origin(kind) is Mapping:
        return get_args(kind)[1]
    field = cast("type[Part]", kind).model_fields.get(name) if _is_part(kind) else None
    return None if field is None else field.annotation


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Part)
