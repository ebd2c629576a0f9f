"""Run before gVisor, as its first process: puts each folder that is given where it takes it from.

It is read as text, and imports nothing of ours. gVisor takes names and opens them again, by which
time another may have put a link there. Here each is opened part by part without following a link,
and what was opened is mounted beside gVisor's own files, among mounts that nobody else has.
"""

import ctypes
import json
import os
import stat
import sys

# Of <sched.h> and <sys/mount.h>.
_NEW_MOUNTS = 0x00020000
_BIND, _ALL_BELOW, _PRIVATE = 0x1000, 0x4000, 0x40000
_PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

libc = ctypes.CDLL(None, use_errno=True)


def _done(code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _opened(path: str) -> int:
    held = os.open("/", _PART | os.O_DIRECTORY)
    for part in path.strip("/").split("/"):
        # Each is opened as it is: a link is no folder, in which nothing can be opened.
        found = os.open(part, _PART, dir_fd=held)
        os.close(held)
        held = found
    if stat.S_ISLNK(os.fstat(held).st_mode):
        raise OSError(0, "a link")
    return held


bundle, program = sys.argv[1], sys.argv[2:]
with open(f"{bundle}/given.json") as file:  # noqa: PTH123
    given: "dict[str, str]" = json.load(file)
try:
    _done(libc.unshare(_NEW_MOUNTS))
    _done(libc.mount(None, b"/", None, _ALL_BELOW | _PRIVATE, None))
    for place, source in given.items():
        held = _opened(source)
        if stat.S_ISDIR(os.fstat(held).st_mode):
            os.mkdir(place)  # noqa: PTH102
        else:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        opened = f"/proc/self/fd/{held}".encode()
        _done(libc.mount(opened, os.fsencode(place), None, _BIND | _ALL_BELOW, None))
        os.close(held)
except OSError as error:
    # Without its path.
    sys.exit(f"a folder that it is given was replaced or cannot be mounted: {error.strerror}")
os.close(os.open(f"{bundle}/begun", os.O_WRONLY | os.O_CREAT))
os.execve(program[0], program, {})  # noqa: S606 - no shell is wanted
