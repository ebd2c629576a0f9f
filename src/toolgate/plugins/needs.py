"""What a plugin depends on, and whether it is here. Nothing is imported to find out."""

import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from importlib.machinery import PathFinder
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WANTED = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)\Z")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_FITS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def missing(dependencies: Iterable[str]) -> list[str]:
    """Those that are neither an installed package nor a module that could be imported, or that are
    of another version than is asked for.
    """
    return [one for one in dependencies if not _is_here(one)]


def _is_here(dependency: str) -> bool:
    found = _NAME.match(dependency)
    if found is None:
        return False
    name, wanted = found[0], dependency[found.end() :].strip()
    try:
        version = metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        # A module need not be called as its package is; without one there is no version to look at.
        return not wanted and _is_importable(name)
    return not wanted or _fits(version, wanted)


def _fits(version: str, wanted: str) -> bool:
    """`>=1.2,<2`, by the numbers of a version; what is not written so does not fit."""
    have = _numbers(version)
    for one in wanted.split(","):
        found = _WANTED.match(one.strip())
        if found is None:
            return False
        asked = _numbers(found[2])
        if found[1] == "~=":
            # The same series: 1.4 up to 2, and 1.4.2 up to 1.5.
            fits = have >= asked and have[: len(asked) - 1] == asked[:-1]
        else:
            fits = _FITS[found[1]](_level(have, asked), _level(asked, have))
        if not fits:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = _RELEASE.match(version)
    return () if found is None else tuple(map(int, found[0].split(".")))


def _level(version: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """1.2 is 1.2.0."""
    return version + (0,) * (len(other) - len(version))


def _is_importable(name: str) -> bool:
    if name in sys.stdlib_module_names:
        return True
    where = None
    parts = name.split(".")
    for number in range(1, len(parts) + 1):
        try:
            found = PathFinder.find_spec(".".join(parts[:number]), where)
        except (ImportError, ValueError):
            return False
        if found is None:
            return False
        where = found.submodule_search_locations
        if where is None and number < len(parts):
            return False
    return True
