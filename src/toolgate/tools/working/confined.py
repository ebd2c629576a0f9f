"""A worker without a sandbox program around it: kept in by the kernel alone, before it is asked.

From then on it has no network, starts no process and signals none, and of files has libraries to
read and one folder to write, as far as the kernel can bound those.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

from toolgate.sandbox import landlock

CONFINED = f"{__name__}:confined"
# Programs' libraries, and what those look at when they are loaded.
_LIBRARIES = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store")
_MACHINE = ("/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system")
_DEATH_SIGNAL, _NO_NEW_PRIVILEGES, _SECCOMP, _BY_FILTER = 1, 38, 22, 2


class _Program(ctypes.Structure):
    """A filter as the kernel takes it: how many instructions of 8 bytes, and where."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def own() -> tuple[str, ...]:
    """Where our code, Python and its packages are."""
    places = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))
    return tuple(dict.fromkeys(places))


def confined(*, data: bytes, folder: str) -> dict[str, bool]:
    """In a worker: whether files are bounded too. `data` is the filter of calls of the kernel."""
    # Whoever started it is the only one who ends it.
    _set(_DEATH_SIGNAL, signal.SIGKILL)
    _set(_NO_NEW_PRIVILEGES, 1)
    bounded = landlock.bounded((*own(), *_LIBRARIES, *_MACHINE), (folder, "/dev/null"))
    program = _Program(len(data) // 8, data)
    _set(_SECCOMP, _BY_FILTER, ctypes.addressof(program))
    return {"files": bounded}


def _set(option: int, *values: int) -> None:
    given = [ctypes.c_ulong(one) for one in (*values, 0, 0, 0, 0)[:4]]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *given) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
