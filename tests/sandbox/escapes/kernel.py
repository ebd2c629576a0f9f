"""The kernel: calls that a tool has no use for, and by which others got out."""

import ctypes
import errno
import fcntl
import os
import pty
import termios

from tests.sandbox.escapes.deed import Told, call, deed, libc

_NEW_USER, _NEW_NET, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x20000
_SIGCHLD = 17


@deed
def nested_users(_: Told) -> bool:
    libc("unshare", _NEW_USER)
    return True


@deed
def nested_users_by_clone(_: Told) -> bool:
    child = call("clone", ctypes.c_ulong(_NEW_USER | _SIGCHLD), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@deed
def nested_users_by_clone3(_: Told) -> bool:
    asked = (ctypes.c_uint64 * 8)(_NEW_USER, 0, 0, 0, _SIGCHLD, 0, 0, 0)
    child = call("clone3", asked, ctypes.sizeof(asked))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@deed
def new_network(_: Told) -> bool:
    libc("unshare", _NEW_NET)
    return True


@deed
def new_mounts(_: Told) -> bool:
    libc("unshare", _NEW_MOUNTS)
    return True


@deed
def network_of_another(told: Told) -> bool:
    libc("setns", os.open(f"/proc/{told['victim']}/ns/net", os.O_RDONLY), 0)
    return True


@deed
def mount_by_the_new_way(_: Told) -> bool:
    return call("fsopen", b"tmpfs", 0) >= 0


@deed
def keys(_: Told) -> bool:
    return call("add_key", b"user", b"toolgate-escape", b"x", 1, ctypes.c_int(-2)) > 0


@deed
def keyring(_: Told) -> bool:
    return call("keyctl", 0, ctypes.c_int(-3), 1) > 0


@deed
def load_into_the_kernel(_: Told) -> bool:
    kind_of_map = (ctypes.c_uint32 * 16)(2, 4, 4, 1)
    return call("bpf", 0, kind_of_map, ctypes.sizeof(kind_of_map)) >= 0


@deed
def watch_the_processor(_: Told) -> bool:
    asked = (ctypes.c_uint32 * 32)(1, 128)
    return call("perf_event_open", asked, 0, -1, -1, 0) >= 0


@deed
def handle_faults(_: Told) -> bool:
    return call("userfaultfd", os.O_CLOEXEC) >= 0


@deed
def ring(_: Told) -> bool:
    return call("io_uring_setup", 2, (ctypes.c_uint32 * 30)()) >= 0


@deed
def read_the_log_of_the_kernel(_: Told) -> bool:
    return call("syslog", 10, 0, 0) > 0


@deed
def pivot(told: Told) -> bool:
    try:
        call("pivot_root", told["given"].encode(), told["given"].encode())
    except OSError as error:
        return error.errno in {errno.EINVAL, errno.EBUSY}
    return True


@deed
def push_into_a_terminal(_: Told) -> bool:
    terminal = pty.openpty()[1]
    if os.fork() == 0:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        try:
            fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.wait()[1] == 0
