"""Run before gVisor, as its first process: puts each folder that is given where it takes it from,
and makes a network with one way out, where it is to have one.

It is read as text, and imports nothing of ours. gVisor takes names and opens them again, by which
time another may have put a link there. Here each is opened part by part without following a link,
and what was opened is mounted beside gVisor's own files, among mounts that nobody else has. The
network is empty; the socket that listens in it is handed over, and nothing of ours is inside.
"""

import ctypes
import fcntl
import json
import os
import socket
import stat
import struct
import sys

# Of <sched.h>, <sys/mount.h>, <sys/ioctl.h> and <net/if.h>.
_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000
_SET_FLAGS, _IS_UP = 0x8914, 0x1
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


def _network(handed_over: int, port: int) -> None:
    _done(libc.unshare(_NEW_NETWORK))
    with socket.socket() as listener, socket.socket(fileno=handed_over) as line:
        fcntl.ioctl(listener, _SET_FLAGS, struct.pack("16sH22x", b"lo", _IS_UP))
        listener.bind(("127.0.0.1", port))
        listener.listen()
        socket.send_fds(line, [b"x"], [listener.fileno()])


bundle, way_out, program = sys.argv[1], sys.argv[2], sys.argv[3:]
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
if way_out:
    try:
        _network(*map(int, way_out.split(":")))
    except OSError as error:
        sys.exit(f"no proxy can be put into its network: {error.strerror}")
os.close(os.open(f"{bundle}/begun", os.O_WRONLY | os.O_CREAT))
os.execve(program[0], program, {})  # noqa: S606 - no shell is wanted
