"""Folders with all that is in them: what tells one from another, and taking one away."""

import hashlib
import os
import secrets
import shutil
import stat

from toolgate.errors import ToolError
from toolgate.tools.system.replacing import rename, sync
from toolgate.tools.system.spot import Spot, told

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20


def tree_digest(folder: int) -> str:
    """Of all names, kinds and contents in it; no link is followed."""
    whole = hashlib.sha256()
    with os.scandir(folder) as found:
        names = sorted(entry.name for entry in found)
    for name in names:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            held = os.open(name, _FOLDER, dir_fd=folder)
            try:
                content = tree_digest(held)
            finally:
                os.close(held)
        elif stat.S_ISREG(state.st_mode):
            content = _file_digest(folder, name)
        else:
            content = "?"
        line = f"{stat.S_IFMT(state.st_mode)} {content} "
        whole.update(line.encode() + os.fsencode(name) + b"\0")
    return whole.hexdigest()


def remove_tree(spot: Spot, wanted: str) -> bool:
    """Take the folder away if it is still as it was; whether it was there.

    It is moved aside before it is looked at, so that nobody changes it meanwhile by its name.
    """
    if spot.stat() is None:
        return False
    spare = f".toolgate-{secrets.token_hex(8)}"
    try:
        rename(spot.folder, spot.name, spare)
        held = -1
        try:
            held = os.open(spare, _FOLDER, dir_fd=spot.folder)
            is_same = tree_digest(held) == wanted
        except OSError:
            is_same = False
        finally:
            if held >= 0:
                os.close(held)
        if not is_same:
            rename(spot.folder, spare, spot.name)
            raise ToolError(
                f"{spot.shown!r} has changed since it was made, and was left as it is. Look at it, "
                "and mend it by hand."
            )
        shutil.rmtree(spare, dir_fd=spot.folder)
    except OSError as error:
        raise told(error, spot.shown) from None
    sync(spot.folder)
    return True


def _file_digest(folder: int, name: str) -> str:
    digest = hashlib.sha256()
    with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
