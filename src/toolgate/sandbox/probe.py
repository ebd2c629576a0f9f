"""Run inside a sandbox: tries what has to work and what has to fail, and says what came of it.

It is read as text, and imports nothing of ours: inside, there is nothing of ours.
"""

import contextlib
import glob
import json
import os
import socket
import sys
from collections.abc import Callable


def _works(attempt: Callable[[], object]) -> bool:
    try:
        return attempt() is not False
    except (OSError, ValueError):
        return False


def _text(path: str) -> str:
    with open(path, errors="replace") as file:  # noqa: PTH123
        return file.read()


def _write(path: str, content: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(content)


def _connects(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return True


def _sees(mark: str) -> bool:
    if mark in os.environ.values():
        return True
    for path in glob.glob("/proc/*/environ"):  # noqa: PTH207
        with contextlib.suppress(OSError):
            if mark in _text(path):
                return True
    return False


def _forks(most: int) -> bool:
    """Whether more processes than allowed can be there at a time; 0: not to be tried."""
    if most == 0:
        return False
    reader, writer = os.pipe()
    children: list[int] = []
    try:
        for _ in range(most + 2):
            child = os.fork()
            if child == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            children.append(child)
    except OSError:
        return False
    finally:
        os.close(writer)
        for child in children:
            os.waitpid(child, 0)
    return True


def _opens(most: int) -> bool:
    opened: list[int] = []
    try:
        opened.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(most + 2))
    except OSError:
        return False
    finally:
        for each in opened:
            os.close(each)
    return True


told = json.load(sys.stdin)
at, known = told["folder"], told["mark"]
json.dump(
    {
        "write_inside": _works(lambda: _write(f"{at}/given/written", known)),
        "read_inside": _works(lambda: _text(f"{at}/shown/mark") == known),
        "read_outside": _works(lambda: _text(f"{at}/hidden/mark")),
        "write_outside": _works(lambda: _write(f"{at}/hidden/written", known)),
        "write_readable": _works(lambda: _write(f"{at}/shown/written", known)),
        "write_protected": _works(lambda: _write(f"{at}/given/kept/settings.toml", known)),
        "connect": _works(lambda: _connects(told["port"])),
        "see_environment": _works(lambda: _sees(known)),
        "many_processes": _works(lambda: _forks(told["processes"])),
        "many_files": _works(lambda: _opens(told["files"])),
    },
    sys.stdout,
)
