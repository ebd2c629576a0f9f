"""Which files this process may touch from now on, by the kernel alone: Landlock, where there is it.

A second wall for what runs without a sandbox program. It cannot be taken down again, and holds for
all that the process starts.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable

# They have one number on every processor.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
# Kinds of access, by the version that brought them: what is unknown to a kernel it cannot refuse.
_FIRST = (1 << 13) - 1
_LATER = {2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL}
# To listen and to connect by TCP; sockets without a path, and signals to others.
_NET, _NET_SINCE = 0b11, 4
_SCOPES, _SCOPES_SINCE = 0b11, 6
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RULESET, _RULE = struct.Struct("=QQQ"), struct.Struct("=Qi")


def version() -> int:
    """Which one the kernel has; 0 where it has none, or does not let it be used."""
    with contextlib.suppress(OSError):
        return _called(_CREATE, None, 0, _VERSION_FLAG)
    return 0


def bounded(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Whether it holds from now on: nothing is read but what is named, and nothing run.

    It wants `no_new_privs` to be set. What is named and not there is left out.
    """
    known = version()
    if not known:
        return False
    every = _FIRST | sum(kind for since, kind in _LATER.items() if known >= since)
    net = _NET if known >= _NET_SINCE else 0
    scopes = _SCOPES if known >= _SCOPES_SINCE else 0
    rules = _RULESET.pack(every, net, scopes)
    ruleset = _called(_CREATE, rules, len(rules), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ | _LIST)
        for path in writable:
            _allow(ruleset, path, every & ~_EXECUTE)
        _called(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, kinds: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = kinds if os.path.isdir(path) else kinds & _OF_FILES  # noqa: PTH112  a string
        _called(_ADD, ruleset, _BENEATH, _RULE.pack(allowed, place), 0)
    finally:
        os.close(place)


def _called(number: int, *given: int | bytes | None) -> int:
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in given]
    library = ctypes.CDLL(None, use_errno=True)
    found: int = library.syscall(ctypes.c_long(number), *words)
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found
