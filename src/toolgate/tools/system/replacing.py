"""Putting a file in its place, whole or not at all, and over nothing that has changed meanwhile."""

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable
from functools import cache

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.system.spot import Spot, told

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = 0o644
_NO_REPLACE = 1
_EXCHANGE = 2
# File systems without the call say so in one of these ways.
_UNABLE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP})
_CHANGED = "has changed meanwhile, and was left as it is. Read it, and try again."


class Version(msgspec.Struct, frozen=True):
    """What tells a file from what somebody else makes of it."""

    device: int
    number: int
    size: int
    changed_ns: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Version":
        """As it is now."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def version(spot: Spot) -> Version | None:
    """What is there, or nothing; `ToolError` where it is no file that can be replaced."""
    found = spot.stat()
    if found is None:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{spot.shown!r} is a folder. Write the path of a file in it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{spot.shown!r} is not a regular file. Only those are written.")
    return Version.of(found)


def replace(
    spot: Spot,
    content: bytes,
    *,
    over: Version | None,
    mode: int | None = None,
    changed_ns: int | None = None,
) -> None:
    """Put it there, over that version or over nothing; on disk when this returns."""
    spare = f".toolgate-{secrets.token_hex(8)}"
    try:
        _write(
            spot.folder,
            spare,
            content,
            mode=mode if mode is not None else (over.mode if over else _FILE),
            changed_ns=changed_ns,
        )
        _swap(spot, spare, over)
    except OSError as error:
        raise told(error, spot.shown) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare, dir_fd=spot.folder)
    sync(spot.folder)


def remove(spot: Spot, *, over: Version) -> None:
    """Take that version away; it is moved aside first, so that nothing else is lost."""
    spare = f".toolgate-{secrets.token_hex(8)}"
    try:
        rename(spot.folder, spot.name, spare)
        if Version.of(os.stat(spare, dir_fd=spot.folder, follow_symlinks=False)) != over:
            rename(spot.folder, spare, spot.name)
            raise ToolError(f"{spot.shown!r} {_CHANGED}")
        os.unlink(spare, dir_fd=spot.folder)
    except OSError as error:
        raise told(error, spot.shown) from None
    sync(spot.folder)


def rename(folder: int, name: str, to: str) -> None:
    """To a name that is free; `FileExistsError` where it is not."""
    if _renamed(folder, name, to, _NO_REPLACE):
        return
    with contextlib.suppress(FileNotFoundError):
        os.stat(to, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(name, to, src_dir_fd=folder, dst_dir_fd=folder)


def sync(folder: int) -> None:
    """The names in a folder are on disk."""
    held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _write(folder: int, name: str, content: bytes, *, mode: int, changed_ns: int | None) -> None:
    held = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(held, "wb", buffering=0) as file:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]
        # Never with the bits that let a program run as somebody else.
        os.fchmod(held, mode & 0o777)
        if changed_ns is not None:
            os.utime(held, ns=(changed_ns, changed_ns))
        os.fsync(held)


def _swap(spot: Spot, spare: str, over: Version | None) -> None:
    if over is None:
        try:
            rename(spot.folder, spare, spot.name)
        except FileExistsError:
            raise ToolError(f"{spot.shown!r} {_CHANGED}") from None
        return
    if _renamed(spot.folder, spare, spot.name, _EXCHANGE):
        # What was there has the spare name now: it can be looked at without a race.
        if Version.of(os.stat(spare, dir_fd=spot.folder, follow_symlinks=False)) != over:
            _renamed(spot.folder, spare, spot.name, _EXCHANGE)
            raise ToolError(f"{spot.shown!r} {_CHANGED}")
        return
    if version(spot) != over:
        raise ToolError(f"{spot.shown!r} {_CHANGED}")
    os.rename(spare, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)


def _renamed(folder: int, name: str, to: str, how: int) -> bool:
    """Whether the system could do it in that way."""
    call = _renameat2()
    if call is None:
        return False
    if call(folder, os.fsencode(name), folder, os.fsencode(to), how) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    if code == errno.ENOENT and how == _EXCHANGE:
        # Somebody took it away: told as a change.
        raise ToolError(f"{to!r} {_CHANGED}")
    raise OSError(code, os.strerror(code))


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = (
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint,
    )  # fmt: skip
    return call
