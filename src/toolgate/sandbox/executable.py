"""Whether a program can begin with what it is shown: its file, its interpreter, where links lead.

Without it the kernel says of a script whose interpreter is not there that the script is not. Only
what is shown is looked at: whoever names a program learns nothing here that it could not read.
"""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from toolgate.sandbox.roots import Mount, Shown
from toolgate.sandbox.ways import RefusedRootError, is_below

# As the kernel has them: links on a way, interpreters of interpreters, and how much it reads of a
# file to find one.
_MOST_LINKS = 40
_MOST_SCRIPTS = 4
_FIRST_LINE = 256
# What a sandbox makes by itself; nothing is said of what lies there.
_ITS_OWN = ("/proc", "/dev")
_PYTHON = re.compile(r"python(\d\.\d+)\Z")
# Folders that hold more than one thing that is installed.
_WIDE = frozenset({"/", "/home", "/opt", "/root", "/srv", "/tmp", "/var"})  # noqa: S108
_HOMES = frozenset({"/home", "/Users"})


class _Seen(msgspec.Struct, frozen=True):
    """A file as it is seen inside: its path there, and where it is on this machine."""

    path: str
    source: str


class _UnseenError(Exception):
    """The way ends at this path, which is not there, inside."""

    def __init__(self, path: str, *, is_shown: bool) -> None:
        super().__init__(path)
        self.path = path
        # It would be seen if it were there.
        self.is_shown = is_shown


def check(program: str, shown: Sequence[Mount], *, path: str, folder: str) -> None:
    """`RefusedRootError` that says what to write, where it is certain that it cannot begin.

    `path`: the folders in which it is looked for; `folder`: the one in which it runs.
    """
    view = _View(shown, path, folder)
    wanted = program
    for _ in range(_MOST_SCRIPTS):
        seen = view.found(wanted, of=program)
        if seen is None:
            return
        lacking = _library(seen, view)
        if lacking:
            raise RefusedRootError(
                f"the Python that {program[:200]!r} runs with does not find its own library: "
                f"put {lacking} in `readable`"
            )
        wanted = _interpreter(seen.source)
        if not wanted:
            return


class _View:
    """The files as the program sees them."""

    def __init__(self, shown: Sequence[Mount], path: str, folder: str) -> None:
        self._shown = {mount.path: mount for mount in shown}
        self._path = [place for place in path.split(":") if place.startswith("/")]
        self._folder = folder

    def found(self, program: str, *, of: str) -> _Seen | None:
        """Where it is; nothing where that is not known from here."""
        if "/" not in program:
            return self._looked_for(program, of)
        wanted = os.path.join(self._folder, program)  # noqa: PTH118 - as it is written
        try:
            return self._resolved(wanted)
        except _UnseenError as unseen:
            raise RefusedRootError(_words(of, unseen)) from None

    def has(self, path: str) -> bool:
        """Whether something is there."""
        try:
            self._resolved(path)
        except _UnseenError:
            return False
        return True

    def _looked_for(self, name: str, of: str) -> _Seen | None:
        for place in self._path:
            wanted = f"{place}/{name}"
            try:
                return self._resolved(wanted)
            except _UnseenError as unseen:
                if unseen.path != wanted and not unseen.is_shown:
                    # It is there, and leads on to where nothing is shown.
                    raise RefusedRootError(_words(of, unseen)) from None
        needs = f"{of[:200]!r}" if of == name else f"{of[:200]!r} needs {name[:60]!r}, which"
        raise RefusedRootError(
            f"the program {needs} is in no folder of its PATH ({':'.join(self._path)}); write the "
            "whole path of what is elsewhere and put where it is installed in `readable`, or add "
            "its folder to PATH in `env`"
        )

    def _resolved(self, path: str) -> _Seen | None:
        """Follow the way to it, link by link."""
        left = path.split("/")[::-1]
        at, links = "", 0
        while left:
            part = left.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                at = at.rpartition("/")[0]
                continue
            at = f"{at}/{part}"
            if at in _ITS_OWN:
                return None
            try:
                target = self._target(at)
            except _UnseenError as unseen:
                whole = os.path.normpath("/".join((at, *reversed(left))))
                raise _UnseenError(whole, is_shown=unseen.is_shown) from None
            if target is None:
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            at = "" if target.startswith("/") else at.rpartition("/")[0]
            left += target.split("/")[::-1]
        return _Seen(at, self._source(at) or at)

    def _target(self, path: str) -> str | None:
        """What the link says that is there; nothing where it is none."""
        mount = self._shown.get(path)
        if mount is not None and mount.shown is Shown.LINK:
            return mount.source
        source = self._source(path)
        if source is None:
            if any(is_below(each, path) for each in self._shown):
                return None
            raise _UnseenError(path, is_shown=False)
        try:
            if stat.S_ISLNK(os.lstat(source).st_mode):
                return str(Path(source).readlink())
        except (FileNotFoundError, NotADirectoryError):
            raise _UnseenError(path, is_shown=True) from None
        except OSError:
            return None
        return None

    def _source(self, path: str) -> str | None:
        around = path
        while around:
            mount = self._shown.get(around)
            if mount is not None:
                return None if mount.shown is Shown.EMPTY else mount.source + path[len(around) :]
            around = around.rpartition("/")[0]
        return None


def _words(program: str, unseen: _UnseenError) -> str:
    needs = "" if unseen.path == os.path.normpath(program) else f" needs {unseen.path!r}, which"
    who = f"the program {program[:200]!r}{needs}"
    if unseen.is_shown:
        return f"{who} is not there; correct the command, or install it"
    return f"{who} is not among what it may read: put {installed_in(unseen.path)} in `readable`"


def _interpreter(source: str) -> str:
    """What a script says that it runs with; nothing where this is none, or cannot be read."""
    try:
        # It is opened as it is, and not waited for: this may be anything by now.
        opened = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        is_file = stat.S_ISREG(os.fstat(opened).st_mode)
        first = os.read(opened, _FIRST_LINE) if is_file else b""
    except OSError:
        return ""
    finally:
        os.close(opened)
    line, ended, _ = first.partition(b"\n")
    if not line.startswith(b"#!") or not ended:
        return ""
    words = os.fsdecode(line[2:]).split()
    if not words or not words[0].startswith("/"):
        return ""
    if PurePosixPath(words[0]).name != "env":
        return words[0]
    behind = [word for word in words[1:] if word not in {"-S", "--split-string"}]
    # With an option or a variable before it, it is not looked for.
    return "" if not behind or behind[0].startswith("-") or "=" in behind[0] else behind[0]


def _library(seen: _Seen, view: _View) -> str:
    """The folder that a Python lacks; nothing where this is none, or finds its own."""
    binary = PurePosixPath(seen.source)
    version = _PYTHON.match(binary.name)
    if version is None:
        return ""
    library = PurePosixPath("lib", f"python{version[1]}", "os.py")
    around = (binary.parent.parent, PurePosixPath(seen.path).parent.parent)
    # One that has it elsewhere is not ours to judge.
    if (
        any(view.has(str(each / library)) for each in around)
        or not Path(around[0], library).exists()
    ):
        return ""
    return installed_in(seen.source)


def installed_in(path: str) -> str:
    """The folder that a program most likely needs whole, by its name alone."""
    parts = PurePosixPath(path).parts
    if "node_modules" in parts:
        return str(PurePosixPath(*parts[: parts.index("node_modules") + 1]))
    folder = PurePosixPath(path).parent
    above = folder.parent
    is_wide = str(above) in _WIDE or str(above.parent) in _HOMES or above.name == ".local"
    if folder.name in {"bin", "sbin"} and not is_wide:
        return str(above)
    is_wide = str(folder) in _WIDE or str(folder.parent) in _HOMES
    return path if is_wide else str(folder)
