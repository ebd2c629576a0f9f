"""One change of a file, in two steps: what it will be, and doing it where nothing came between."""

import contextlib
import hashlib
import os
from collections.abc import Sequence

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.system.backups import NOTHING, Backup, Before
from toolgate.tools.system.replacing import Version, remove, replace, version
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import MEGABYTE, Spot
from toolgate.tools.system.trees import remove_tree

# What is replaced is kept until then, so there is an end to it.
MOST_REPLACED = 8 * MEGABYTE


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is there, and what is to be there."""

    path: str
    over: Version | None
    old: bytes
    new: bytes

    @property
    def kept(self) -> bytes:
        """What has to be kept aside of the old: nothing where the new begins with it."""
        return b"" if self.new.startswith(self.old) else self.old

    def backup(self, made: tuple[str, ...] = ()) -> Backup:
        """What takes it back."""
        before = Before()
        if self.over is not None:
            before = Before(
                mode=self.over.mode & 0o777,
                changed_ns=self.over.changed_ns,
                size=len(self.old),
                digest=digest(self.old),
                kept="whole" if self.kept or not self.old else "beginning",
            )
        return Backup(path=self.path, before=before, after=digest(self.new), made=made)


def planned(roots: Roots, path: str, content: bytes, *, mode: str) -> Change:
    """What a write would do; `ToolError` where it cannot be done."""
    with roots.writing(path) as spot:
        over = version(spot)
        if over is None:
            return Change(path=spot.shown, over=None, old=b"", new=content)
        if mode == "create":
            raise ToolError(
                f"{spot.shown!r} is there already. Take another name, or the mode 'overwrite' or "
                "'append'."
            )
        old = _old(spot, over)
        return Change(
            path=spot.shown, over=over, old=old, new=old + content if mode == "append" else content
        )


def done(roots: Roots, change: Change) -> None:
    """Do it; `ToolError` where something else is there by now, which is left alone."""
    with roots.writing(change.path) as spot:
        replace(spot, change.new, over=change.over)


def taken_back(roots: Roots, backup: Backup, kept: bytes) -> bool:
    """The file as it was. Whether there was anything to do: a second time there is not.

    `ToolError` where somebody has changed it since.
    """
    before = backup.before
    if backup == NOTHING:
        return False
    try:
        with roots.writing(backup.path) as spot:
            if backup.is_folder:
                return remove_tree(spot, backup.after)
            over = version(spot)
            now = b"" if over is None else _old(spot, over)
            if _is_as_before(before, over, now):
                return False
            if over is None or digest(now) != backup.after:
                raise ToolError(
                    f"{spot.shown!r} has changed since it was written, and was left as it is. Look "
                    "at it, and mend it by hand."
                )
            if before.mode is None:
                remove(spot, over=over)
            else:
                content = kept if before.kept == "whole" else now[: before.size]
                replace(spot, content, over=over, mode=before.mode, changed_ns=before.changed_ns)
    finally:
        if before.mode is None:
            remove_empty(roots, backup.made)
    return True


def digest(content: bytes) -> str:
    """What tells one content from all others."""
    return hashlib.sha256(content).hexdigest()


def _old(spot: Spot, over: Version) -> bytes:
    if over.size > MOST_REPLACED:
        raise ToolError(
            f"{spot.shown!r} has {over.size:,} bytes. What is replaced is kept so that it can be "
            f"taken back, up to {MOST_REPLACED:,} bytes: write to a new file."
        )
    return spot.read(MOST_REPLACED)


def _is_as_before(before: Before, over: Version | None, now: bytes) -> bool:
    if before.mode is None or over is None:
        return before.mode is None and over is None
    return before.digest == digest(now) and before.changed_ns == over.changed_ns


def remove_empty(roots: Roots, folders: Sequence[str]) -> None:
    """Folders that were made, from the top, where nobody has put anything into them."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError, ToolError), roots.writing(folder) as spot:
            os.rmdir(spot.name, dir_fd=spot.folder)
