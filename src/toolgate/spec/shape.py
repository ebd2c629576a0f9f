"""What can be a tool: a function, a bound method, a partial, an object that can be called."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from toolgate.errors import InvalidSpecs
from toolgate.spec.problem import Problem

DECLARED = "__toolgate_tool__"
_TOLD_BY_VALUE = (bool, int, float, str, type(None))


class Function(NamedTuple):
    """Something to call as a tool, and what it is known by."""

    given: Callable[..., Any]
    # What has the types and the words: of an object, its `__call__`.
    described: Callable[..., Any]
    name: str
    place: str
    is_async: bool
    # Whether it yields its result in pieces.
    is_stream: bool
    # What `@tool` says on it.
    declared: Mapping[str, Any]
    # What a partial has settled: no caller may see or change it.
    fixed: frozenset[str]


class _Behind(NamedTuple):
    runs: Callable[..., Any]
    described: Callable[..., Any]
    declared: dict[str, Any]
    fixed: frozenset[str] = frozenset()


def as_function(given: Any, name: str = "") -> Function:
    """What can be called as a tool, or `InvalidSpecs` that says what to pass instead."""
    if isinstance(given, type):
        raise _refused(
            "is a class",
            "Pass a function, or a method of an object.",
            f"{given.__module__}.{given.__qualname__}",
            name or given.__name__,
        )
    if not callable(given):
        shown = repr(given)[:60] if isinstance(given, _TOLD_BY_VALUE) else _a(given)
        raise _refused(
            f"{shown} is not a function", "Pass the function itself, not what it returns."
        )
    found = _behind(given)
    own = str(getattr(given, "__name__", ""))
    name = name or str(found.declared.get("name", own))
    home = getattr(found.described, "__module__", None) or "python"
    place = f"{home}.{getattr(found.described, '__qualname__', own)}"
    if not name:
        raise _refused(f"{_a(given)} has no name of its own", "Write add(…, name='NAME').", place)
    if inspect.isgeneratorfunction(found.runs):
        raise _refused(
            "is a generator, which no call would run",
            "Return a list, or write async def to yield pieces.",
            place,
            name,
        )
    if _is_unbound(given, found.runs):
        raise _refused(
            "is a method without its object",
            "Pass the method of an object, as in add(shop.buy).",
            place,
            name,
        )
    is_async = inspect.iscoroutinefunction(found.runs)
    is_stream = inspect.isasyncgenfunction(found.runs)
    return Function(
        given, found.described, own, place, is_async, is_stream, found.declared, found.fixed
    )


def _behind(given: Callable[..., Any]) -> _Behind:
    declared = dict(getattr(given, DECLARED, {}))
    if isinstance(given, functools.partial):
        partial = cast("functools.partial[Any]", given)
        inner = _behind(partial.func)
        # The same care, but another name and fewer arguments.
        kept = {
            key: value
            for key, value in inner.declared.items()
            if key not in {"name", "input_schema"}
        }
        return _Behind(inner.runs, inner.described, kept | declared, frozenset(partial.keywords))
    if inspect.isroutine(given):
        return _Behind(given, given, declared)
    call = given.__call__
    described = given if hasattr(given, "__wrapped__") else call
    return _Behind(call, described, dict(getattr(call, DECLARED, {})) | declared)


def _is_unbound(given: Callable[..., Any], runs: Callable[..., Any]) -> bool:
    if not inspect.isfunction(runs):
        return False
    holder = runs.__qualname__.rpartition(".")[0]
    if not holder or holder.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(given).parameters.values()), None)
    return first is not None and first.name == "self" and first.annotation is first.empty


def _a(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"


def _refused(message: str, write: str, place: str = "python", tool: str = "") -> InvalidSpecs:
    return InvalidSpecs([Problem(file=place, tool=tool, message=message, write=write)])
