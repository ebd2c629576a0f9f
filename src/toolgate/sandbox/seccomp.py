"""Which calls of the kernel a program may make: a filter, compiled once by libseccomp.

What is refused is of no use to a tool, and is where holes in kernels were found: name spaces,
mounts, keys, tracing, io_uring, rare kinds of sockets. Nor can a program leave a file behind that
runs as its owner, whoever starts it.
"""

import errno
import functools
import os
import socket
import stat
import tempfile
import termios
from collections.abc import Iterator
from typing import Any

# Refused as if the caller had no right to them.
_REFUSED = (
    # Keys are the user's, not the name space's.
    *("add_key", "keyctl", "request_key"),
    # Other processes, and what they hold.
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    # Name spaces and mounts.
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    # Files by what they are instead of where they are.
    *("open_by_handle_at", "name_to_handle_at"),
    # The kernel's own workings.
    *("bpf", "perf_event_open", "userfaultfd", "init_module", "finit_module", "delete_module"),
    *("kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl"),
    *("quotactl_fd", "syslog", "vhangup", "lookup_dcookie", "fanotify_init"),
    # The machine's clock, name and ports.
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "iopl", "ioperm", "modify_ldt"),
)
# Of no use to who only computes: the network, other programs, and processes of the same user.
_REFUSED_ALONE = (
    *("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4"),
    *("execve", "execveat", "fork", "vfork", "setsid", "setpgid"),
    *("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"),
    *("pidfd_open", "pidfd_send_signal", "process_mrelease", "setpriority", "ioprio_set"),
    *("sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr"),
    *("migrate_pages", "move_pages"),
)
# Libraries take another way where these are said not to exist. What `openat2` is asked for stands
# where a filter does not look.
_UNKNOWN = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "openat2")
# Which argument of a call is a file's mode.
_MODES = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mkdir": 1, "mkdirat": 2,
    "mknod": 1, "mknodat": 2,
}  # fmt: skip
# The same where a flag before it says that there is one.
_MODES_BEHIND = {"open": 2, "openat": 3}
_MAKES = (os.O_CREAT, os.O_TMPFILE & ~os.O_DIRECTORY)
# Newer than some libraries; it has one number everywhere.
_NUMBERS = {"fchmodat2": 452}
_NEW_NAMESPACES = 0x7E020080
# What makes a thread of a new process.
_THREAD = 0x00010000
_FAMILIES = frozenset({socket.AF_UNIX, socket.AF_INET, socket.AF_INET6})
_FAMILIES_KNOWN = 64
_TIOCLINUX = 0x541C
_LOW_WORD = 0xFFFFFFFF


class NoFilterError(Exception):
    """The filter cannot be made here; the message says what is missing."""


@functools.cache
def program(*, alone: bool = False) -> bytes:
    """The filter as the kernel takes it. `alone`: for one process of ours that nothing else keeps
    in; it has no sockets, starts no process and does nothing to another.
    """
    try:
        # Deferred: it looks for the library by running programs.
        import pyseccomp  # noqa: PLC0415
    except ImportError as missing:
        raise NoFilterError(
            f"the Python package {missing.name or 'pyseccomp'} is not installed; install toolgate "
            "again with all that it requires"
        ) from missing
    except (RuntimeError, OSError) as missing:
        raise NoFilterError(
            "the library libseccomp is not installed (Debian: apt install libseccomp2)"
        ) from missing
    made = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for action, call, conditions in _rules(pyseccomp, alone=alone):
        made.add_rule(action, call, *conditions)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()


def _rules(library: Any, *, alone: bool) -> Iterator[tuple[int, str | int, tuple[Any, ...]]]:
    refused = library.ERRNO(errno.EPERM)
    arg, masked = library.Arg, library.MASKED_EQ
    for call in (*_REFUSED, *(_REFUSED_ALONE if alone else ())):
        # Calls that this processor never had are none that could be made.
        if library.resolve_syscall(library.system_arch(), call) >= 0:
            yield refused, call, ()
    for call in _UNKNOWN:
        yield library.ERRNO(errno.ENOSYS), call, ()
    for bit in range(32):
        if _NEW_NAMESPACES >> bit & 1:
            yield refused, "clone", (arg(0, masked, 1 << bit, 1 << bit),)
    # Only the low word counts to the kernel; one with more above it is the same request.
    for request in (termios.TIOCSTI, _TIOCLINUX):
        yield refused, "ioctl", (arg(1, masked, _LOW_WORD, request),)
    yield from _modes(library)
    if alone:
        yield refused, "clone", (arg(0, masked, _THREAD, 0),)
        yield refused, "prlimit64", (arg(0, library.NE, 0),)
        return
    no_family = library.ERRNO(errno.EAFNOSUPPORT)
    for call in ("socket", "socketpair"):
        for family in range(_FAMILIES_KNOWN):
            if family not in _FAMILIES:
                yield no_family, call, (arg(0, masked, _LOW_WORD, family),)
        yield no_family, call, (arg(0, library.GE, _FAMILIES_KNOWN),)


def _modes(library: Any) -> Iterator[tuple[int, str | int, tuple[Any, ...]]]:
    refused, here = library.ERRNO(errno.EPERM), library.system_arch()
    for call, bits in _guarded():
        known = call if library.resolve_syscall(here, call) >= 0 else _NUMBERS.get(call)
        # Calls that this processor never had are none that could be made.
        if known is not None:
            tests = (library.Arg(at, library.MASKED_EQ, bit, bit) for at, bit in bits)
            yield refused, known, tuple(tests)


def described() -> dict[str, Any]:
    """What has to be refused also by a kernel of the program's own, as runtimes of containers read
    it: the modes of files that are not its own.
    """
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            *_described("openat2", errno.ENOSYS, ()),
            *(one for call, bits in _guarded() for one in _described(call, errno.EPERM, bits)),
        ],
    }


def _described(
    call: str, error: int, bits: tuple[tuple[int, int], ...]
) -> Iterator[dict[str, Any]]:
    tests = [
        {"index": at, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"} for at, bit in bits
    ]
    yield {"names": [call], "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": tests}


def _guarded() -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """No file gets the bits by which it runs as its owner or its group: calls that would give one,
    each with bits that are all set in arguments of it.
    """
    for bit in (stat.S_ISUID, stat.S_ISGID):
        for call, at in _MODES.items():
            yield call, ((at, bit),)
        for call, at in _MODES_BEHIND.items():
            for makes in _MAKES:
                yield call, ((at - 1, makes), (at, bit))
