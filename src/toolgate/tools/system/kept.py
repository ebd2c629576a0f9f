"""What the house keeps for itself, wherever links lead: told by what it is, not by how it is named.

Files are compared by device and number, so that a second name, a mount or a link of any kind is the
same thing. What is not there yet is told by the folder that it would be in.
"""

import itertools
import os
import stat
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

Identity = tuple[int, int]
_UP = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# Deeper than any path can be.
_HIGHEST = 4_096
# Beside a file of the store lie others with the same content.
_BESIDE = ("", "-wal", "-shm", "-journal")
# So many files are compared with one that has several names.
_MOST = 10_000


class Kept:
    """Some files and folders, as they are at this moment."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._given = tuple(paths)

    @cached_property
    def _paths(self) -> tuple[Path, ...]:
        """Where the paths of an operator lead counts too."""
        spelled = ((path, Path(os.path.realpath(path))) for path in self._given)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(spelled)))

    def holds(self, folder: int, name: str, *, second_names: bool = True) -> bool:
        """Whether what is at `name`, or would be, is one of them or in one of them.

        `second_names`: also where it is a file in one of them that has another name here, for which
        all their files are looked at.
        """
        if not self._paths:
            return False
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            found = None
        return self.among(folder, second_names=second_names)(name, found)

    def leads_to(self, folder: int, name: str) -> bool:
        """Whether one of them would come to be where a folder of that name is put there."""
        wanted = (identity(os.fstat(folder)), name.casefold())
        return any(
            (identity(found), above.name.casefold()) == wanted
            for path in self._paths
            for above in (path, *path.parents)
            if (found := _stat(str(above.parent))) is not None
        )

    def among(
        self, folder: int, *, second_names: bool = True
    ) -> Callable[[str, os.stat_result | None], bool]:
        """The same for many entries of one folder."""
        things, entries = self._things(), self._entries()
        here = identity(os.fstat(folder))
        is_inside = any(each in things for each in ancestors(folder)) if things else False

        def is_one(name: str, found: os.stat_result | None) -> bool:
            if is_inside or (here, name.casefold()) in entries:
                return True
            if found is None:
                return False
            if identity(found) in things:
                return True
            has_more = second_names and found.st_nlink > 1 and stat.S_ISREG(found.st_mode)
            return has_more and self._has_inside(found)

        return is_one

    def _things(self) -> set[Identity]:
        return {
            identity(found)
            for path in self._paths
            for end in _BESIDE
            if (found := _stat(f"{path}{end}")) is not None
        }

    def _entries(self) -> set[tuple[Identity, str]]:
        return {
            (identity(found), (path.name + end).casefold())
            for path in self._paths
            if (found := _stat(str(path.parent))) is not None
            for end in _BESIDE
        }

    def _has_inside(self, wanted: os.stat_result) -> bool:
        """Whether it is a second name of a file in one of the folders."""
        seen = 0
        for path in self._paths:
            for place, folders, names in os.walk(path):
                if "pyvenv.cfg" in names:
                    # Libraries, of which other environments have the same files.
                    folders.clear()
                for name in names:
                    seen += 1
                    found = _stat(f"{place}/{name}")
                    if found is not None and identity(found) == identity(wanted):
                        return True
                if seen > _MOST:
                    # Not all could be looked at: it is taken for one.
                    return True
        return False


def identity(found: os.stat_result) -> Identity:
    """What a file is, however it is named."""
    return found.st_dev, found.st_ino


def ancestors(folder: int) -> list[Identity]:
    """The folder itself and all above it, by climbing, not by names."""
    held = os.dup(folder)
    try:
        found = [identity(os.fstat(held))]
        while len(found) < _HIGHEST:
            above = os.open("..", _UP, dir_fd=held)
            os.close(held)
            held = above
            one = identity(os.fstat(held))
            if one == found[-1]:
                break
            found.append(one)
        return found
    finally:
        os.close(held)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  a Path would be made for each
    except OSError:
        return None
