"""The folders that tools may touch files in: the only way from a path to a file.

A tool that is handed `means` and a path does this, in a thread where a disk may be slow:

    roots = Roots.of(means)
    content = roots.read("notes/today.md")            # at most a megabyte, or `most=`
    with roots.reading("data/big.csv") as spot, spot.open_file() as file:
        ...                                           # a stream of bytes
    with roots.writing("out/report.md", parents=True) as spot:
        replace(spot, b"...")                         # see `replacing`: whole, or not at all
    folder = roots.location("project")                # for a sandbox's policy, and nothing else

All of them raise a `ToolError` that says what to do. Paths begin at the first root, or with the
name of a root. What is hidden cannot be read, and what is protected not be written; nor is what
git keeps, since it runs what stands there.
"""

import contextlib
import errno
import os
import posixpath
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from toolgate.errors import ToolError
from toolgate.sandbox.ways import RefusedRootError, opened, settled
from toolgate.settings.settings import FOLDER
from toolgate.tools.means import Means
from toolgate.tools.system.beneath import folder_beneath, has_openat2
from toolgate.tools.system.gits import check_no_head, check_not_gits, check_place
from toolgate.tools.system.kept import Kept, ancestors, identity
from toolgate.tools.system.naming import check_new, parts_of
from toolgate.tools.system.spot import MEGABYTE, Spot, told

_MOST_LINKS = 16
_FOLDER = 0o755


class Root(msgspec.Struct, frozen=True):
    """A folder of the operator's, and how callers name it."""

    name: str
    path: str


class Roots:
    """All that a house has."""

    def __init__(self, roots: Iterable[Root], *, hidden: Kept, protected: Kept) -> None:
        self._roots = tuple(roots)
        self._hidden = hidden
        self._protected = protected

    @classmethod
    def of(cls, means: Means) -> "Roots":
        """Those that the settings name, as they are at this moment."""
        home = str(means.root.absolute())
        roots: list[Root] = []
        for text in means.settings.roots:
            if text == FOLDER:
                with contextlib.suppress(OSError):
                    os.mkdir(f"{home}/{FOLDER}", _FOLDER)  # noqa: PTH102  most often it is there
            with contextlib.suppress(RefusedRootError):
                path = settled(str(Path(home) / text), [home])
                # The whole machine is no folder for tools.
                if path != "/":
                    roots.append(Root(_name(text, roots), path))
        return cls(
            roots,
            hidden=Kept(means.hidden),
            protected=Kept(means.protected),
        )

    @property
    def names(self) -> list[str]:
        """How callers name them; paths without a name begin at the first."""
        return [root.name for root in self._roots]

    def named(self, path: str) -> str:
        """The one way to write a path, whatever is there."""
        return self._shown(*self._root(parts_of(path)))

    @contextmanager
    def reading(self, path: str) -> Generator[Spot]:
        """Where a path leads, to read what is there."""
        with self._spot(path) as spot:
            if self._hidden.holds(spot.folder, spot.name):
                raise ToolError(f"{spot.shown!r} is kept by toolgate itself and cannot be read.")
            yield spot

    @contextmanager
    def writing(self, path: str, *, parents: bool = False) -> Generator[Spot]:
        """Where a path leads, to put something there; with the folders on the way, if asked."""
        if parents:
            self.make_folders(posixpath.dirname(path))
        root, parts = self._root(parts_of(path))
        with self._at(root, parts, is_written=True) as spot:
            for part in parts_of(path):
                _check_new(part)
            if spot.name == ".":
                raise ToolError("That is the root folder itself. Write the path of a file in it.")
            _check_new(spot.name)
            check_no_head(spot.name)
            self._refuse_protected(spot)
            yield spot

    @contextmanager
    def founding(self, path: str) -> Generator[Spot]:
        """Where a folder with content is to be put, which is not there yet."""
        with self.writing(path) as spot:
            if spot.stat() is not None:
                raise ToolError(f"{spot.shown!r} is there already. Name a folder that is not.")
            for kept in (self._protected, self._hidden):
                if kept.leads_to(spot.folder, spot.name):
                    raise _protected(spot)
            yield spot

    def read(self, path: str, *, most: int = MEGABYTE) -> bytes:
        """The content of a file."""
        with self.reading(path) as spot:
            return spot.read(most)

    def location(self, path: str) -> str:
        """Where something is on this machine: for a sandbox, which opens it without any link."""
        with self.reading(path) as spot:
            found = spot.stat()
            if found is None:
                raise told(FileNotFoundError(errno.ENOENT, ""), spot.shown)
            folder = str(Path(f"/proc/self/fd/{spot.folder}").readlink())
            return folder if spot.name == "." else posixpath.join(folder, spot.name)

    def unseen(self, folder: int) -> Callable[[str, os.stat_result], bool]:
        """Says of the entries of a folder which of them nobody sees."""
        return self._hidden.among(folder)

    def make_folders(self, path: str) -> list[str]:
        """Every folder on the way that is missing; their paths, from the top."""
        root, parts = self._root(parts_of(path))
        for part in parts:
            _check_new(part)
        made: list[str] = []
        for count in range(1, len(parts) + 1):
            with self._at(root, parts[:count], is_written=True) as spot:
                if spot.stat() is not None:
                    continue
                self._refuse_protected(spot)
                try:
                    os.mkdir(spot.name, _FOLDER, dir_fd=spot.folder)
                except FileExistsError:
                    continue
                except OSError as error:
                    raise told(error, spot.shown) from None
                made.append(spot.shown)
        return made

    def _refuse_protected(self, spot: Spot) -> None:
        # A write puts a new file in a name's place: of one that is protected, other names keep the
        # old. What is hidden is looked at by all its names: a backup of it could be read.
        if self._protected.holds(spot.folder, spot.name, second_names=False) or self._hidden.holds(
            spot.folder, spot.name
        ):
            raise _protected(spot)

    def _spot(self, path: str) -> AbstractContextManager[Spot]:
        return self._at(*self._root(parts_of(path)))

    @contextmanager
    def _at(
        self, root: Root, parts: tuple[str, ...], *, is_written: bool = False
    ) -> Generator[Spot]:
        """The folder is held; the last name is followed, beneath the root, where it is a link."""
        shown = self._shown(root, parts)
        with contextlib.ExitStack() as stack:
            try:
                base = opened(root.path)
            except RefusedRootError:
                raise ToolError(f"The root folder {root.name!r} is not there. {_ASK}") from None
            stack.callback(os.close, base)
            try:
                folder, name = _resolved(base, "/".join(parts))
            except OSError as error:
                raise told(error, shown) from None
            stack.callback(os.close, folder)
            top = identity(os.fstat(base))
            if top not in ancestors(folder):
                raise told(OSError(errno.EXDEV, ""), shown)
            if is_written:
                check_place(folder, name, top)
            yield Spot(folder=folder, name=name, shown=shown)

    def _shown(self, root: Root, parts: tuple[str, ...]) -> str:
        """As a caller writes it: with the root's name where it would be taken for another."""
        path = "/".join(parts) or "."
        if root == self._roots[0] and self._root(parts) == (root, parts):
            return path
        return posixpath.normpath(posixpath.join(root.name, path))

    def _root(self, parts: tuple[str, ...]) -> tuple[Root, tuple[str, ...]]:
        if not self._roots:
            raise ToolError(f"No folder is open to tools. {_ASK}")
        for root in sorted(self._roots, key=lambda root: -len(root.name)):
            named = tuple(part for part in root.name.split("/") if part != ".")
            if named and parts[: len(named)] == named:
                return root, parts[len(named) :]
        return self._roots[0], parts


_ASK = "Ask the operator to name one that is there in the setting tools.roots."


def _check_new(name: str) -> None:
    check_new(name)
    check_not_gits(name)


def _protected(spot: Spot) -> ToolError:
    return ToolError(
        f"{spot.shown!r} belongs to toolgate's own files, which no tool writes. Take another place."
    )


def _name(text: str, before: list[Root]) -> str:
    """As the settings name it; what is elsewhere on the machine is named by its last part."""
    name = posixpath.normpath(text)
    if name.startswith(("/", "..", "~")):
        name = posixpath.basename(name) or "root"
    taken = {root.name for root in before}
    count = 1
    unique = name
    while unique in taken:
        count += 1
        unique = f"{name}-{count}"
    return unique


def _resolved(base: int, path: str) -> tuple[int, str]:
    """The folder and the name in it, which is no link: a link's own path is resolved again."""
    for _ in range(_MOST_LINKS):
        above, name = posixpath.split(path)
        if name in {"", ".", ".."}:
            return folder_beneath(base, path or "."), "."
        folder = folder_beneath(base, above or ".")
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISLNK(found.st_mode):
                return folder, name
            target = os.readlink(name, dir_fd=folder)
        except FileNotFoundError:
            return folder, name
        except OSError:
            os.close(folder)
            raise
        os.close(folder)
        if not has_openat2() or target.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        path = posixpath.join(above, target.rstrip("/"))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
