"""A git repository in the folders that are open to tools: where it is, and where its data is."""

import os
import posixpath
import stat
from pathlib import Path

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.system.naming import parts_of
from toolgate.tools.system.roots import Roots

_LONGEST = 4_000


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """`shown` is how callers name its top; the others are folders of this machine.

    A work tree that was added to a repository has its `data` in another, which is `common`.
    """

    shown: str
    top: str
    data: str
    common: str

    @property
    def folders(self) -> tuple[str, ...]:
        """All that git has to read."""
        return tuple(dict.fromkeys((self.top, self.data, self.common)))


def repository(roots: Roots, path: str) -> Repository:
    """The one that a path lies in, or `ToolError`. It is not looked for above a root."""
    wanted = roots.location(path)
    parts = parts_of(path)
    for count in range(len(parts), -1, -1):
        shown = "/".join(parts[:count]) or "."
        top = roots.location(shown)
        # A path may begin with the name of a root, and what is before that is another one.
        if wanted != top and not wanted.startswith(top.rstrip("/") + "/"):
            break
        found = _data(roots, shown, top) if Path(top).is_dir() else None
        if found is not None:
            return Repository(shown=shown, top=top, data=found, common=_common(roots, found))
    raise ToolError(
        f"{path!r} is in no git repository. Write the path of a folder that is in one; "
        "list_directory shows a folder .git at its top."
    )


def _data(roots: Roots, shown: str, top: str) -> str | None:
    place = posixpath.join(shown, ".git")
    with roots.reading(place) as spot:
        found = spot.stat()
        if found is None:
            return None
        if stat.S_ISDIR(found.st_mode):
            return roots.location(place)
        if not stat.S_ISREG(found.st_mode):
            raise _elsewhere(shown)
        said = spot.read(_LONGEST).decode("utf-8", "replace")
    if not said.startswith("gitdir: "):
        return None
    return _inside(roots, top, said.removeprefix("gitdir: ").strip(), shown)


def _common(roots: Roots, data: str) -> str:
    shown = _shown(roots, posixpath.join(data, "commondir"))
    if shown is None:
        raise _elsewhere(".git")
    with roots.reading(shown) as spot:
        if spot.stat() is None:
            return data
        said = spot.read(_LONGEST).decode("utf-8", "replace").strip()
    return _inside(roots, data, said, ".git")


def _inside(roots: Roots, base: str, said: str, shown: str) -> str:
    """Where a file says that the data is, if that is a folder in one of the roots."""
    inner = _shown(roots, os.path.normpath(posixpath.join(base, said)))
    if inner is None or not said:
        raise _elsewhere(shown)
    return roots.location(inner)


def _shown(roots: Roots, place: str) -> str | None:
    """How a caller would name a place of this machine."""
    for name in roots.names:
        base = roots.location(name)
        if place == base or place.startswith(base.rstrip("/") + "/"):
            return posixpath.join(name, posixpath.relpath(place, base))
    return None


def _elsewhere(shown: str) -> ToolError:
    return ToolError(
        f"The repository at {shown!r} has its data outside of the folders that are open to tools. "
        "Take one that has it inside."
    )
