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
from typing import Any, BinaryIO

import orjson

from toolgate.errors import ToolError

LENGTH = struct.Struct("!I")
# Only functions of our own have such names.
HOMES = ("toolgate.tools.", "toolgate.testing.")


def main() -> None:
    """Answer until nobody asks any more."""
    asked, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints is not an answer.
    os.dup2(2, 1)
    _bound(int(sys.argv[1]))
    while (request := read(asked)) is not None:
        write(told, _answered(request))


def read(stream: BinaryIO) -> Any:
    """The next message, or nothing at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return orjson.loads(stream.read(LENGTH.unpack(head)[0]))


def write(stream: BinaryIO, message: Any) -> None:
    """One message."""
    raw = orjson.dumps(message)
    stream.write(LENGTH.pack(len(raw)) + raw)
    stream.flush()


def _bound(memory: int) -> None:
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 * 1024 * 1024),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    module, _, name = str(request["function"]).partition(":")
    if not module.startswith(HOMES):
        return {"failed": "ValueError"}
    try:
        function = getattr(importlib.import_module(module), name)
        answer = {"result": function(**request["args"])}
        # Here, where it can be told.
        orjson.dumps(answer)
    except ToolError as error:
        return {"refused": error.message}
    except MemoryError:
        return {"refused": "That takes more memory than there is for it. Ask for less."}
    except Exception as error:  # noqa: BLE001  told by its kind; its words can hold anything
        return {"failed": type(error).__name__}
    return answer


if __name__ == "__main__":
    main()
