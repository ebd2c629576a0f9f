"""A plugin's folder as it was at one moment: its files, and the fingerprint over all of them."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

# What there may be of a plugin: code and its data, not a disk.
MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024
# How its author looks after it.
_KEPT = frozenset({".git"})
# Made by running and testing it. No module of a manifest is loaded from there; a program that a
# portable plugin brings could be.
_MADE = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
PORTABLE = "plugin.json"
Stamp = tuple[tuple[str, int, int, int, int], ...]
_Entry = tuple[str, os.stat_result]
# Between a link and where it leads. No module is called so.
LINK = " -> "


def shown(path: str) -> str:
    """A file's name, whatever is in it."""
    return path if path.isprintable() else ascii(path)


class Refused(ValueError):
    """Why a plugin is not taken: a sentence without its last full stop."""


class Changing(Refused):
    """Somebody is still writing it."""


class Package(msgspec.Struct, frozen=True, dict=True):
    """Every file by its path in the folder. What is loaded is these bytes, and nothing else."""

    root: Path
    files: Mapping[str, bytes]

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """SHA-256 of each file."""
        return {path: hashlib.sha256(raw).hexdigest() for path, raw in self.files.items()}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over paths and files: any other byte, name or file makes another one."""
        whole = hashlib.sha256()
        for path in sorted(self.files):
            named = os.fsencode(path)
            whole.update(f"{len(named)}:".encode() + named + bytes.fromhex(self.digests[path]))
        return whole.hexdigest()


def stamp(root: Path) -> Stamp:
    """What changes when any file does; nothing is read for it."""
    try:
        return tuple(
            (path, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
            for path, info in _files(root)
        )
    except Refused as error:
        return ((str(error), 0, 0, 0, 0),)


def taken(root: Path) -> Package:
    """The folder as it is now, or `Refused`."""
    before = stamp(root)
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    for path, info in _files(root):
        # A link is no file of its own: what it leads to is there under its own name.
        raw = b"" if stat.S_ISLNK(info.st_mode) else _read(root, path, left)
        left -= len(raw)
        files[path] = raw
    if stamp(root) != before:
        raise Changing("it changes while it is read; it is looked at again soon")
    return Package(root, files)


def _read(root: Path, path: str, most: int) -> bytes:
    try:
        # A link that took the file's place since the walk is not followed.
        opened = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise Refused(f"{shown(path)} cannot be read ({error.strerror})") from None
    if len(raw) > most:
        raise Refused(f"it has more than {MOST_BYTES // 1_048_576} MB; keep large data elsewhere")
    return raw


def _files(root: Path) -> Iterator[_Entry]:
    has_programs = os.path.lexists(root / PORTABLE)
    return _walked(root, _KEPT if has_programs else _KEPT | _MADE)


def _walked(
    root: Path, left_out: frozenset[str], below: str = "", found: list[int] | None = None
) -> Iterator[_Entry]:
    count = [0] if found is None else found
    if not below and root.is_symlink():
        raise Refused("its folder is a link; name the folder that it leads to in [tools] plugins")
    try:
        entries = sorted(os.scandir(root / below), key=lambda one: one.name)
    except OSError as error:
        raise Refused(f"{below or 'its folder'} cannot be read ({error.strerror})") from None
    for entry in entries:
        if entry.name in left_out:
            continue
        path = f"{below}/{entry.name}" if below else entry.name
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        count[0] += 1
        if count[0] > MOST_FILES:
            raise Refused(f"it has more than {MOST_FILES:,} files; keep data elsewhere")
        if stat.S_ISLNK(info.st_mode):
            yield f"{_plain(path)}{LINK}{_plain(_within(root, path, left_out))}", info
            continue
        _refuse(_plain(path), info)
        if stat.S_ISDIR(info.st_mode):
            yield from _walked(root, left_out, path, count)
        else:
            yield path, info


def _plain(path: str) -> str:
    """A path that is not taken for a link."""
    if LINK in path:
        raise Refused(f"{shown(path)} is called as a link is shown; rename it")
    return path


def _within(root: Path, path: str, left_out: frozenset[str]) -> str:
    """Where a link leads, if that is in the folder, and looked at."""
    home, place = os.path.realpath(root), os.path.realpath(root / path)
    if not place.startswith(f"{home}{os.sep}"):
        raise Refused(f"{shown(path)} is a link that leads outside; put the file itself there")
    leads = os.path.relpath(place, home)
    if not left_out.isdisjoint(Path(leads).parts):
        raise Refused(f"{shown(path)} is a link to what nobody looks at; put the file itself there")
    return leads


def _refuse(path: str, info: os.stat_result) -> None:
    if not path.isprintable():
        raise Refused(f"{shown(path)} is no name of a file that can be shown")
    if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode):
        raise Refused(f"{path} is no file and no folder; remove it")
    if path.lower().endswith(".pth"):
        raise Refused(f"{path} would change where Python looks for code; remove it")
