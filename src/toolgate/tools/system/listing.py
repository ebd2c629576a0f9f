"""What is in a folder: names, kinds and sizes, as deep as asked, and never through a link."""

import datetime as dt
import itertools
import os
import posixpath
import stat
from typing import Any

import msgspec

from toolgate.tools.system.globs import Glob
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import kind_of, told

# So many entries are looked at, also where few of them match.
_MOST_SEEN = 50_000
_DEEPEST = 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to tell."""

    glob: str = ""
    depth: int | None = None
    limit: int = 500


class _Listing:
    """One that is being made."""

    def __init__(self, roots: Roots, wanted: Wanted) -> None:
        self._roots = roots
        self._wanted = wanted
        self._glob = Glob(wanted.glob) if wanted.glob else None
        # A pattern that names folders looks into them.
        deepest = 1 if "/" not in wanted.glob or self._glob is None else self._glob.depth
        self._depth = wanted.depth or deepest or _DEEPEST
        self.entries: list[dict[str, Any]] = []
        self.seen = 0
        self.is_cut = False

    def add(self, folder: int, inner: str, depth: int) -> None:
        """All of a folder, in the order of names; what is in it behind it."""
        unseen = self._roots.unseen(folder)
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in itertools.islice(found, _MOST_SEEN + 1))
        for name in names:
            if len(self.entries) >= self._wanted.limit or self.seen >= _MOST_SEEN:
                self.is_cut = True
                return
            self.seen += 1
            try:
                state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                # Gone meanwhile.
                continue
            if unseen(name, state):
                continue
            path = posixpath.join(inner, name)
            if self._glob is None or self._glob.matches(path):
                self.entries.append(_entry(folder, name, path, state))
            if stat.S_ISDIR(state.st_mode) and depth < self._depth:
                self._descend(folder, name, path, depth)

    def _descend(self, folder: int, name: str, path: str, depth: int) -> None:
        try:
            held = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:
            # Not readable, or no longer a folder.
            return
        try:
            self.add(held, path, depth + 1)
        finally:
            os.close(held)


def listed(roots: Roots, path: str, wanted: Wanted) -> dict[str, Any]:
    """The entries of a folder, with what they are."""
    listing = _Listing(roots, wanted)
    with roots.reading(path) as spot:
        held = spot.open_folder()
        try:
            listing.add(held, "", 1)
        except OSError as error:
            raise told(error, spot.shown) from None
        finally:
            os.close(held)
        return {
            "path": spot.shown,
            "entries": listing.entries,
            "truncated": listing.is_cut,
            "roots": roots.names,
        }


def _entry(folder: int, name: str, path: str, state: os.stat_result) -> dict[str, Any]:
    changed = dt.datetime.fromtimestamp(int(state.st_mtime), dt.UTC)
    entry: dict[str, Any] = {
        "path": _shown(path),
        "kind": kind_of(state.st_mode),
        "size": state.st_size if stat.S_ISREG(state.st_mode) else None,
        "modified": changed.isoformat().replace("+00:00", "Z"),
    }
    if stat.S_ISLNK(state.st_mode):
        entry["target"] = _target(folder, name, path)
    return entry


def _target(folder: int, name: str, path: str) -> str | None:
    """Where a link leads, as it says; nothing where that is outside, which is nobody's business."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError:
        return None
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if end.startswith(("/", "..")) else _shown(target)


def _shown(path: str) -> str:
    """Names that are no text are told as far as they are."""
    return path.encode("utf-8", "replace").decode()
