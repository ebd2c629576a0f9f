"""The way to a folder or file that a program is given: which links on it count, and opening it.

A program that may write a folder can put a link in it, where a folder was that another program is
given. So a link counts only where no program can have put it, and what is opened at each start is
opened part by part, without following any: what was opened is what is mounted.
"""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_MOST_LINKS = 40
_PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class RefusedRootError(Exception):
    """A root that cannot be shown; the message says why, for an operator."""


def settled(path: str, anchors: Iterable[str] = (), links: int = _MOST_LINKS) -> str:
    """Where a path leads. Of the links on it, those count that no program can have put there.

    `anchors`: folders in which no program makes anything, as they are written.
    """
    path = os.path.normpath(path)
    anchors = tuple(anchors)
    around = max((each for each in anchors if is_below(path, each)), key=len, default="/")
    still = {"/", *map(os.path.realpath, anchors)}
    real = Path(os.path.realpath(around))
    is_others = around == "/"
    for part in Path(path).relative_to(around).parts:
        entry = real / part
        is_others = is_others and not _could_change(real)
        if entry.is_symlink():
            if str(real) not in still and not is_others:
                raise RefusedRootError(_linked(path))
            if links == 0:
                raise RefusedRootError(f"its folder {Path(path).name!r} leads from link to link")
            entry = Path(settled(str(real / entry.readlink()), anchors, links - 1))
            is_others = False
        real = entry
    return str(real)


def _could_change(folder: Path) -> bool:
    """Whether a program, which is this user outside, could: its owner can make it writable."""
    try:
        return folder.stat().st_uid == os.geteuid() or os.access(
            folder, os.W_OK, effective_ids=True
        )
    except OSError:
        return True


def opened(path: str) -> int:
    """A descriptor of what is at this path, and at no other by a link; to be closed."""
    held = os.open("/", _PART | os.O_DIRECTORY)
    parts = Path(path).parts[1:]
    try:
        for place, part in enumerate(parts, 1):
            more = 0 if place == len(parts) else os.O_DIRECTORY
            found = os.open(part, _PART | more, dir_fd=held)
            os.close(held)
            held = found
    except OSError as error:
        os.close(held)
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise RefusedRootError(_linked(path)) from None
        raise RefusedRootError(
            f"its folder {Path(path).name!r} cannot be opened ({error.strerror})"
        ) from None
    if stat.S_ISLNK(os.fstat(held).st_mode):
        # The last part is opened as it is, also where it is a link.
        os.close(held)
        raise RefusedRootError(_linked(path))
    return held


def is_below(path: str, root: str) -> bool:
    """Whether a path is this one or lies in it, by their names alone."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def _linked(path: str) -> str:
    return (
        f"on the way to its folder {Path(path).name!r} is a link, which a program may have put "
        "there; write where it is to lead, or remove it"
    )
