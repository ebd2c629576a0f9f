"""A process that computes for tools: one request at a time, over its standard streams.

What it is asked for are functions of our own, by name, with plain JSON. It is ended from outside
when it takes too long; what it can use is bounded before the first request is read.
"""

import contextlib
import importlib
import os
import resource
import struct
import sys
from typing import BinaryIO

import orjson

from toolgate.errors import ToolError
from toolgate.tools.working.parcel import Parcel

# How long the JSON of a message is, and how long the bytes behind it.
LENGTHS = struct.Struct("!II")
# Only functions of our own have such names.
HOMES = ("toolgate.tools.", "toolgate.testing.")
# JSON is read on the loop of whoever asked, where nothing else happens meanwhile.
LARGEST = 4_000_000
# Each list and each object takes as long as many letters.
_MOST_PARTS = 250_000


def main() -> None:
    """Answer until nobody asks any more."""
    asked, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints is not an answer.
    os.dup2(2, 1)
    _alone(told.fileno())
    _bound(int(sys.argv[1]))
    while (request := read(asked)) is not None:
        write(told, *_answered(request))


def read(stream: BinaryIO) -> Parcel | None:
    """The next message, or nothing at the end."""
    head = stream.read(LENGTHS.size)
    if len(head) < LENGTHS.size:
        return None
    length, weight = LENGTHS.unpack(head)
    return Parcel(orjson.loads(stream.read(length)), stream.read(weight))


def write(stream: BinaryIO, raw: bytes, content: bytes) -> None:
    """One message."""
    stream.write(LENGTHS.pack(len(raw), len(content)))
    stream.write(raw)
    stream.write(content)
    stream.flush()


def _alone(kept: int) -> None:
    """Close what was open where this was started: not every way to start a process does.

    In the sandbox there is nothing of it, and nothing that tells of it.
    """
    with contextlib.suppress(FileNotFoundError):
        for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208  their numbers
            if number > 2 and number != kept:
                with contextlib.suppress(OSError):
                    os.close(number)


def _bound(memory: int) -> None:
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 * 1024 * 1024),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _answered(request: Parcel) -> tuple[bytes, bytes]:
    """As JSON, and the bytes beside it."""
    module, _, name = str(request.value["function"]).partition(":")
    if not module.startswith(HOMES):
        return _told(failed="ValueError")
    try:
        function = getattr(importlib.import_module(module), name)
        given = {"data": request.content} if request.value["weighty"] else {}
        found = function(**request.value["args"], **given)
        value, content = found if isinstance(found, Parcel) else (found, b"")
        raw = orjson.dumps({"result": value})
    except ToolError as error:
        return _told(refused=error.message)
    except MemoryError:
        return _told(refused="That takes more memory than there is for it. Ask for less.")
    except Exception as error:  # noqa: BLE001  told by its kind; its words can hold anything
        return _told(failed=type(error).__name__)
    if len(raw) > LARGEST:
        return _told(
            refused=f"The result has {len(raw):,} bytes, and may have {LARGEST:,}. Ask for less: "
            "a part of it, fewer rows, or fewer fields."
        )
    if raw.count(b"{") + raw.count(b"[") > _MOST_PARTS:
        return _told(
            refused=f"The result has more than {_MOST_PARTS:,} lists and objects. Ask for less: a "
            "part of it, or fewer rows."
        )
    return raw, content


def _told(**why: str) -> tuple[bytes, bytes]:
    return orjson.dumps(why), b""


if __name__ == "__main__":
    main()
