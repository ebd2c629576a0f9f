"""A place in a root: the folder, which is held open, and a name in it that is no link."""

import errno
import os
import stat
from typing import BinaryIO

import msgspec

from toolgate.errors import ToolError

MEGABYTE = 1_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """What is done here is done in that folder, wherever it is moved to meanwhile.

    `shown` is the path as a caller writes it. The folder's descriptor belongs to whoever made this.
    """

    folder: int
    name: str
    shown: str

    def stat(self) -> os.stat_result | None:
        """What is there, or nothing. A link that was put here meanwhile is told as a link."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> BinaryIO:
        """The file, to be read; `ToolError` where it is none. It waits for no device or pipe."""
        found = self.stat()
        if found is None:
            raise ToolError(
                f"There is no file {self.shown!r}. Look with list_directory at what is there."
            )
        if stat.S_ISDIR(found.st_mode):
            raise ToolError(f"{self.shown!r} is a folder. Use list_directory to see what is in it.")
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{self.shown!r} is not a regular file. Only those are read.")
        held = self._opened(_READ)
        if not stat.S_ISREG(os.fstat(held).st_mode):
            os.close(held)
            raise ToolError(f"{self.shown!r} is not a regular file. Only those are read.")
        return os.fdopen(held, "rb", buffering=0)

    def open_folder(self) -> int:
        """A descriptor of the folder, to be closed; `ToolError` where it is none."""
        found = self.stat()
        if found is None:
            raise ToolError(
                f"There is no folder {self.shown!r}. Look with list_directory at what is there."
            )
        if not stat.S_ISDIR(found.st_mode):
            raise ToolError(f"{self.shown!r} is not a folder. Use read_file to read a file.")
        return self._opened(os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def read(self, most: int = MEGABYTE) -> bytes:
        """All that is in the file; `ToolError` where that is more than `most` bytes."""
        with self.open_file() as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise ToolError(
                    f"{self.shown!r} has {size:,} bytes, and at most {most:,} are read at once. "
                    "Read a part of it."
                )
            content = file_content(file, most + 1)
        if len(content) > most:
            raise ToolError(f"{self.shown!r} grows while it is read. Try again later.")
        return content

    def _opened(self, flags: int) -> int:
        try:
            return os.open(self.name, flags, dir_fd=self.folder)
        except OSError as error:
            raise told(error, self.shown) from None


def file_content(file: BinaryIO, most: int) -> bytes:
    """At most so many bytes, from where it stands."""
    pieces: list[bytes] = []
    left = most
    while left > 0 and (piece := file.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def kind_of(mode: int) -> str:
    """In a word for callers."""
    return _KINDS.get(stat.S_IFMT(mode), "other")


class NotThere(ToolError):
    """Nothing has this name, or a folder on the way to it is missing."""


def told(error: OSError, shown: str) -> ToolError:
    """What the system says, as a sentence that names nothing but the caller's own path."""
    match error.errno:
        case errno.ENOENT:
            return NotThere(f"There is no {shown!r}. Look with list_directory at what is there.")
        case errno.ENOTDIR:
            return ToolError(f"On the way to {shown!r} is a file, or a link that is not followed.")
        case errno.EXDEV | errno.ELOOP:
            return ToolError(
                f"{shown!r} leads out of the root folder by a link. Write where it is to be itself."
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolError(f"The system does not allow that at {shown!r}. Take another place.")
        case errno.ENAMETOOLONG:
            return ToolError("That path is too long for the file system. Write a shorter one.")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"There is no room left to write {shown!r}. Nothing was changed.")
        case _:
            return ToolError(f"{shown!r} cannot be used ({os.strerror(error.errno or 0)}).")
