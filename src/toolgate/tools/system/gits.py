"""What git goes by: whoever writes there has their commands run by the next who uses git.

Git takes a folder for a repository when `.git` leads to it, whatever it is called itself, or when a
file `HEAD` lies in it beside `objects` and `refs`, or beside `commondir`.
"""

import os
import stat

from toolgate.errors import ToolError
from toolgate.tools.system.kept import Identity, identity

_GIT = ".git"
_HEAD = "HEAD"
_DATA = frozenset({"objects", "refs", "commondir"})
_UP = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def check_not_gits(name: str) -> None:
    """`ToolError` where git would go by what has this name."""
    if name.casefold() == _GIT:
        raise _gits()


def check_no_head(name: str) -> None:
    """`ToolError` where a file of this name would make a repository of the folder that it is in."""
    if name == _HEAD:
        raise ToolError(
            "A file HEAD makes git take a folder for a repository, and run what is set there. No "
            "tool writes one: take another name."
        )


def check_place(folder: int, name: str, top: Identity) -> None:
    """`ToolError` where what is written at `name` is git's, by whichever way the folder was found.

    Nothing above `top` is looked at, which the folder is, or lies in.
    """
    if name in _DATA and _has_head(folder):
        raise _gits()
    held = os.dup(folder)
    try:
        while True:
            here = identity(os.fstat(held))
            if _has_head(held) and any(_found(held, one) for one in _DATA):
                raise _gits()
            if here == top:
                return
            above = os.open("..", _UP, dir_fd=held)
            os.close(held)
            held = above
            led = _found(held, _GIT)
            if led is not None and identity(led) == here:
                raise _gits()
            if identity(os.fstat(held)) == here:
                return
    finally:
        os.close(held)


def _has_head(folder: int) -> bool:
    try:
        found = os.stat(_HEAD, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return not stat.S_ISDIR(found.st_mode)


def _found(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder)
    except OSError:
        return None


def _gits() -> ToolError:
    return ToolError(
        "What is in .git belongs to git, which runs hooks and settings from there. No tool writes "
        "it: use git for that."
    )
