"""Opening what lies beneath a folder, by the system itself: no link and no `..` leads out of it.

`openat2` resolves a path in one step, so that nobody can put a link in its way meanwhile. Where the
system has no such call, every part is opened by itself and no link is followed at all.
"""

import contextlib
import ctypes
import errno
import os
from functools import cache

# The same number on every machine that Linux runs on today.
_OPENAT2 = 437
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
# Somebody renames folders meanwhile: the system asks to try again.
_TRIES = 32
_PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def folder_beneath(root: int, path: str) -> int:
    """A descriptor of the folder at a path that begins at `root`; to be closed.

    `OSError` where there is none, and where the way to it leads out: `EXDEV` or `ELOOP`.
    """
    if not has_openat2():
        return _walked(root, path)
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            return _openat2(root, path)
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@cache
def has_openat2() -> bool:
    """Whether the system has the call, and lets us use it."""
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        os.close(_openat2(here, "."))
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(here)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(root: int, path: str) -> int:
    how = _How(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    found = _libc().syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(root),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def _walked(root: int, path: str) -> int:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    held = os.open(".", _PART | os.O_DIRECTORY, dir_fd=root)
    try:
        for part in parts:
            found = os.open(part, _PART | os.O_DIRECTORY, dir_fd=held)
            os.close(held)
            held = found
    except OSError:
        os.close(held)
        raise
    return held
