"""Modes: to leave a file behind that runs as its owner, whoever starts it."""

import ctypes
import os
import stat

from tests.sandbox.escapes.deed import Told, call, deed, write

_HERE = -100


def _has(path: str) -> bool:
    return bool(os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID))  # noqa: PTH116


def _file(told: Told, name: str) -> str:
    path = f"{told['given']}/{name}"
    write(path)
    return path


@deed
def run_as_its_owner(told: Told) -> bool:
    path = _file(told, "own")
    os.chmod(path, 0o755 | stat.S_ISUID)  # noqa: PTH101, S103
    return _has(path)


@deed
def run_as_its_group(told: Told) -> bool:
    path = _file(told, "group")
    os.chmod(path, 0o755 | stat.S_ISGID)  # noqa: PTH101, S103
    return _has(path)


@deed
def run_as_its_owner_by_descriptor(told: Told) -> bool:
    path = _file(told, "held")
    os.fchmod(os.open(path, os.O_RDONLY), 0o755 | stat.S_ISUID)
    return _has(path)


@deed
def run_as_its_owner_by_folder(told: Told) -> bool:
    _file(told, "beside")
    os.chmod("beside", 0o4755, dir_fd=os.open(told["given"], os.O_RDONLY))  # noqa: S103
    return _has(f"{told['given']}/beside")


@deed
def run_as_its_owner_by_the_newer_call(told: Told) -> bool:
    path = _file(told, "newer")
    call("fchmodat2", _HERE, path.encode(), 0o4755, 0)
    return _has(path)


@deed
def be_made_to_run_as_its_owner(told: Told) -> bool:
    path = f"{told['given']}/made"
    os.open(path, os.O_CREAT | os.O_WRONLY, 0o755 | stat.S_ISUID)
    return _has(path)


@deed
def be_made_nameless_to_run_as_its_owner(told: Told) -> bool:
    made = os.open(told["given"], os.O_TMPFILE | os.O_WRONLY, 0o755 | stat.S_ISUID)
    return bool(os.fstat(made).st_mode & stat.S_ISUID)


@deed
def be_made_as_a_node_to_run_as_its_owner(told: Told) -> bool:
    path = f"{told['given']}/node"
    os.mknod(path, stat.S_IFREG | 0o755 | stat.S_ISUID)
    return _has(path)


@deed
def be_made_by_the_newest_call_to_run_as_its_owner(told: Told) -> bool:
    path = f"{told['given']}/newest"
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o755 | stat.S_ISUID, 0)
    call("openat2", _HERE, path.encode(), how, ctypes.sizeof(how))
    return _has(path)
