"""Modules beside the settings, which tool files name; none is taken from where tools write, and
none from a plugin, whose code is run as it was agreed to and not as it lies there.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from toolgate.sandbox.ways import is_below


class WrittenByToolsError(ModuleNotFoundError):
    """It is there, in a folder that tools write, or of plugins: nobody has agreed to that code."""


def reach(home: Path, roots: Iterable[str]) -> None:
    """Let modules of that folder be imported, and nothing out of the closed folders `roots`.

    The folder is last in line, so that none of its modules hides a library's. It is no root itself:
    see `premises`.
    """
    if str(home) not in sys.path:
        sys.path.append(str(home))
    _UNWRITTEN.close(roots)
    if _UNWRITTEN not in sys.meta_path:
        sys.meta_path.insert(0, _UNWRITTEN)


class _Unwritten(MetaPathFinder):
    """A root beside modules is a package to Python, whatever a tool writes into it."""

    def __init__(self) -> None:
        self._roots: set[str] = set()
        # What the first part of such a module's name would be.
        self._names: set[str] = set()

    def close(self, roots: Iterable[str]) -> None:
        """From now on nothing is imported from there."""
        places = {os.path.realpath(place) for place in sys.path}
        for root in roots:
            self._roots.add(root)
            inner = (Path(root).relative_to(place) for place in places if is_below(root, place))
            self._names.update(path.parts[0] for path in inner if path.parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self._names:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None:
            return None
        if found.has_location and not self._is_written(found.origin or ""):
            return found
        # A package without a file of its own can lie in several folders.
        folders = () if found.has_location else found.submodule_search_locations or ()
        left = [place for place in folders if not self._is_written(place)]
        if not left:
            raise WrittenByToolsError(
                f"{fullname!r} lies in a folder that tools write, or of plugins; move it",
                name=fullname,
            )
        found.submodule_search_locations = left
        return found

    def _is_written(self, place: str) -> bool:
        real = os.path.realpath(place)
        return any(is_below(real, root) for root in self._roots)


_UNWRITTEN = _Unwritten()
