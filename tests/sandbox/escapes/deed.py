"""What the programs that try to get out share. It runs inside: it imports only Python's own."""

import ctypes
import os
import platform
from collections.abc import Callable
from typing import Any

Told = dict[str, Any]
# By name: each does one thing, and answers whether it could. An `OSError` is a no.
DEEDS: dict[str, Callable[[Told], bool]] = {}
_LIBC = ctypes.CDLL(None, use_errno=True)
# Those from 424 on have one number everywhere.
_NUMBERS = (
    {
        "x86_64": {"add_key": 248, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "syslog": 103}
        | {"userfaultfd": 323, "kcmp": 312, "pivot_root": 155, "clone": 56}
        | {"name_to_handle_at": 303, "open_by_handle_at": 304},
        "aarch64": {
            "add_key": 217,
            "keyctl": 219,
            "bpf": 280,
            "perf_event_open": 241,
            "syslog": 116,
        }
        | {"userfaultfd": 282, "kcmp": 272, "pivot_root": 41, "clone": 220}
        | {"name_to_handle_at": 264, "open_by_handle_at": 265},
    }[platform.machine()]
    | {"pidfd_getfd": 438, "clone3": 435, "io_uring_setup": 425, "fsopen": 430}
    | {
        "openat2": 437,
        "fchmodat2": 452,
    }
)


def deed(function: Callable[[Told], bool]) -> Callable[[Told], bool]:
    DEEDS[function.__name__] = function
    return function


def libc(name: str, *args: Any) -> int:
    """A function of the C library; its error is raised."""
    return _checked(getattr(_LIBC, name)(*args))


def call(name: str, *args: Any) -> int:
    """A call of the kernel, by its number."""
    _LIBC.syscall.restype = ctypes.c_long
    return _checked(_LIBC.syscall(ctypes.c_long(_NUMBERS[name]), *args))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def text(path: str) -> str:
    with open(path, errors="replace") as file:  # noqa: PTH123
        return file.read()


def write(path: str, content: str = "escaped") -> bool:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(content)
    return True
