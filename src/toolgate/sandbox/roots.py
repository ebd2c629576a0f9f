"""What of this machine's files a program sees, and where, as a list of mounts in their order.

A path that is protected is never writable, though it lies in a writable root and though it does not
exist yet. What could be renamed, replaced or made on the way to it is held still: folders on the
way are mounts of their own, and the folder that holds it can be read but not changed; the folders
beside it stay writable. In place of a folder that is hidden there is an empty one.

What is a root by itself, or a part of one, is to be opened by `ways.opened`: its source has no link
on its way.
"""

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from toolgate.sandbox.policy import Policy
from toolgate.sandbox.ways import RefusedRootError, is_below, settled

# What programs need to start: no folder with keys, users, or how this machine is set up.
_PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store")
_ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types"),
    *("protocols", "services", "ssl/certs", "ssl/openssl.cnf", "ca-certificates"),
    *("pki/tls/certs", "pki/ca-trust/extracted"),
)
# Lists in which an empty entry or a star stands for nothing at all, not for everything.
_NOTHING = frozenset({"", "*", "**", "/*"})
_MOST_BESIDE = 256


class Shown(StrEnum):
    """How a path is shown."""

    READ = "read"
    WRITE = "write"
    LINK = "link"
    EMPTY = "empty"


class Mount(msgspec.Struct, frozen=True):
    """One path, as it is inside; `source` is where it comes from, or what a link says.

    `is_given`: it is no part of the system, and may lie where programs write.
    """

    shown: Shown
    path: str
    source: str = ""
    is_given: bool = False


def named(given: Iterable[str] | None) -> tuple[str, ...]:
    """The entries of a list that name something. Without any, nothing is meant."""
    return tuple(entry for entry in given or () if entry.strip() not in _NOTHING)


def mounts(policy: Policy) -> tuple[Mount, ...]:
    """Everything that is shown, a folder before what lies in it."""
    given = dict([*_roots(policy.readable, Shown.READ), *_roots(policy.writable, Shown.WRITE)])
    shown = {mount.path: mount for mount in system()} if policy.system else {}
    real = {path: _real(path, policy) for path in given}
    # A virtual environment's lib64 is a link to its lib, on which nothing can be mounted.
    placed = {path: _place(path, real) for path in given}
    real = {placed[path]: source for path, source in real.items()}
    given = {placed[path]: how for path, how in sorted(given.items(), key=_by_care)}
    shown |= {path: Mount(how, path, real[path], is_given=True) for path, how in given.items()}
    protected = tuple(_spelled((*policy.protected, *policy.hidden)))
    held = [mount for path in protected for mount in _held(path, policy.writable)]
    for mount in sorted(held, key=lambda each: each.shown is Shown.READ):
        if mount.shown is Shown.READ or _may_write(mount.path, given, protected):
            root = max((each for each in given if is_below(mount.path, each)), key=len)
            source = real[root] + mount.path[len(root) :]
            shown[mount.path] = Mount(mount.shown, mount.path, source, is_given=True)
    for folder in _emptied(policy, real):
        shown = {path: mount for path, mount in shown.items() if not is_below(path, folder)}
        shown[folder] = Mount(Shown.EMPTY, folder)
    return tuple(sorted(shown.values(), key=lambda each: (each.path.count("/"), each.path)))


def _by_care(entry: tuple[str, Shown]) -> bool:
    """What is only read comes last: of two that are one place, it holds."""
    return entry[1] is Shown.READ


def _place(path: str, real: Mapping[str, str]) -> str:
    """Where a root is to be mounted: nothing can be on a link that a root around it shows.

    A link counts only where it leads to the very folder that is meant.
    """
    around = max(
        (root for root in real if root != path and is_below(path, root)), key=len, default=""
    )
    if not around or real[path] == real[around] + path[len(around) :]:
        return path
    seen = os.path.realpath(real[around] + path[len(around) :])
    if seen != real[path] or not is_below(seen, real[around]):
        return path
    return around + seen[len(real[around]) :]


def _may_write(path: str, given: Mapping[str, Shown], protected: Iterable[str]) -> bool:
    """Whether the nearest root around a path is writable, and nothing protected is around it."""
    around = max((root for root in given if is_below(path, root)), key=len, default="")
    return given.get(around) is Shown.WRITE and not any(is_below(path, held) for held in protected)


@functools.cache
def system() -> tuple[Mount, ...]:
    """The programs and libraries of this machine."""
    return tuple(_system())


def _system() -> Iterator[Mount]:
    for name in (*_PROGRAMS, *(f"etc/{name}" for name in _ETC)):
        path = Path("/", name)
        if path.is_symlink() and len(path.parts) == 2:
            yield Mount(Shown.LINK, str(path), str(path.readlink()))
        elif path.exists():
            yield Mount(Shown.READ, str(path), str(path.resolve()))


def _roots(given: Iterable[str], how: Shown) -> Iterator[tuple[str, Shown]]:
    for root in named(given):
        path = os.path.normpath(root)
        if not Path(root).is_absolute() or path.startswith("//") or "\0" in root:
            raise RefusedRootError("a folder for the sandbox is written from the root: /srv/data")
        if path in {"/", "/proc", "/sys", "/dev"} or path.startswith(("/proc/", "/sys/", "/dev/")):
            raise RefusedRootError(f"{path} cannot be given to a program; name a folder in it")
        if not Path(path).exists():
            raise RefusedRootError(f"{path} is not there; make it, or take it off the list")
        yield path, how


def _real(root: str, policy: Policy) -> str:
    """Where it leads, by links that count: those in a folder that is held still for every program.

    That is the folder around a file of toolgate's own.
    """
    if root in policy.agreed:
        return policy.agreed[root]
    files = (path for path in _spelled(policy.protected) if Path(path).is_file())
    return settled(root, {str(Path(path).parent) for path in files})


def _emptied(policy: Policy, real: Mapping[str, str]) -> Iterator[str]:
    """Where, inside, each of the hidden folders would be seen."""
    folders = set(map(os.path.realpath, policy.hidden))
    for folder in folders:
        if any(is_below(folder, other) for other in folders - {folder}):
            # It is gone with what it lies in.
            continue
        # An interpreter can be at home in what is hidden; it is shown all the same.
        holds_agreed = any(is_below(source, folder) for source in policy.agreed.values())
        for root, source in real.items():
            if is_below(source, folder) and root not in policy.agreed:
                raise RefusedRootError(f"{root} is toolgate's store; name a folder beside it")
            if not is_below(folder, source):
                continue
            if holds_agreed or not Path(folder).is_dir():
                # Nothing can be mounted on what is yet to be made, or is replaced by another file;
                # nor in what is empty.
                raise RefusedRootError(
                    f"{root} holds toolgate's store, or what else it keeps to itself, and cannot "
                    "be shown without it; name a folder beside it"
                )
            yield root + folder[len(source) :]


def _spelled(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield os.path.normpath(path)
        real = os.path.realpath(path)
        if real != path:
            yield real


def _held(path: str, writable: Iterable[str]) -> Iterator[Mount]:
    """What keeps a path as it is, seen from each writable root that reaches it."""
    for root in map(os.path.normpath, named(writable)):
        real = os.path.realpath(root)
        for reached in {path, path.replace(real, root, 1) if is_below(path, real) else path}:
            if is_below(root, reached):
                raise RefusedRootError(f"{root} holds what toolgate itself is governed by")
            if is_below(reached, root):
                yield from _on_the_way(Path(root), Path(reached))


def _on_the_way(root: Path, path: Path) -> Iterator[Mount]:
    folder = root
    for part in path.relative_to(root).parts:
        entry = folder / part
        if entry.is_symlink() or not entry.is_dir():
            # A file is replaced by renaming another over it, which no mount on it survives; what is
            # not there yet, or is a link, cannot be mounted on.
            yield from _still(folder, but=entry)
            return
        yield Mount(Shown.READ if entry == path else Shown.WRITE, str(entry), str(entry))
        folder = entry


def _still(folder: Path, *, but: Path) -> Iterator[Mount]:
    """A folder in which nothing can be made, renamed or removed; those inside stay writable."""
    yield Mount(Shown.READ, str(folder), str(folder))
    inside = sorted(e.path for e in os.scandir(folder) if e.is_dir(follow_symlinks=False))
    if len(inside) > _MOST_BESIDE:
        raise RefusedRootError(
            f"{folder} holds the settings and too many folders; name some of them"
        )
    for path in inside:
        if path != str(but):
            yield Mount(Shown.WRITE, path, path)
