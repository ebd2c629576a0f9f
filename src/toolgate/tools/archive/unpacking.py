"""A fresh folder that an archive is unpacked into: it gets its name when all of it is there."""

import contextlib
import os
import secrets
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry
from toolgate.tools.system.replacing import rename, sync
from toolgate.tools.system.spot import Spot, told
from toolgate.tools.system.trees import tree_digest

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RUNS = 0o111


class Unpacking:
    """One that is under way. Only folders and regular files are made, each of them new.

    Its verbs run in threads, which nobody can stop: whoever ends it waits for the one that runs, so
    that no thread uses a descriptor that is something else's by then.
    """

    def __init__(self, spot: Spot, spare: str, folder: int) -> None:
        self._spot = spot
        self._spare = spare
        self._folder = folder
        self._file = -1
        self._lock = threading.Lock()
        self._is_over = False

    def begin(self, entry: Entry) -> None:
        """A file or folder of the archive, empty at first."""
        with self._turn():
            self._close_file()
            *above, name = entry.path.split("/")
            if entry.kind == "folder":
                above.append(name)
            held = self._reached(above)
            try:
                if entry.kind == "file":
                    mode = 0o755 if entry.mode & _RUNS else 0o644
                    self._file = os.open(name, _NEW, mode, dir_fd=held)
            finally:
                os.close(held)

    def write(self, piece: bytes) -> None:
        """More of the file that was begun last."""
        with self._turn():
            left = memoryview(piece)
            while left:
                left = left[os.write(self._file, left) :]

    def digest(self) -> str:
        """Of all that is there."""
        with self._turn():
            self._close_file()
            return tree_digest(self._folder)

    def finish(self) -> None:
        """It gets its name; `ToolError` where somebody else has taken that."""
        with self._turn():
            self._close_file()
            os.fchmod(self._folder, 0o755)
            os.fsync(self._folder)
            try:
                rename(self._spot.folder, self._spare, self._spot.name)
            except FileExistsError:
                raise ToolError(
                    f"{self._spot.shown!r} is there by now. Name a folder that is not."
                ) from None
            sync(self._spot.folder)

    def end(self) -> None:
        """Nothing more is done; what has not got its name is removed."""
        with self._turn():
            self._is_over = True
            self._close_file()
            os.close(self._folder)
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self._spare, dir_fd=self._spot.folder)

    @contextmanager
    def _turn(self) -> Generator[None]:
        with self._lock:
            if self._is_over:
                raise ToolError("Unpacking was given up.")
            yield

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _reached(self, parts: list[str]) -> int:
        held = os.dup(self._folder)
        for part in parts:
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=held)
                found = os.open(part, _INSIDE, dir_fd=held)
            finally:
                os.close(held)
            held = found
        return held


@contextmanager
def unpacking(spot: Spot) -> Generator[Unpacking]:
    """What is not finished is gone afterwards, whatever happened."""
    spare = f".toolgate-{secrets.token_hex(8)}"
    try:
        os.mkdir(spare, 0o700, dir_fd=spot.folder)
        folder = os.open(spare, _INSIDE, dir_fd=spot.folder)
    except OSError as error:
        raise told(error, spot.shown) from None
    made = Unpacking(spot, spare, folder)
    try:
        yield made
    except OSError as error:
        raise told(error, spot.shown) from None
    finally:
        made.end()
