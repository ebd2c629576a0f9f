"""A listening socket in a program's own network, which has no other way out."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from toolgate.sandbox.child import spawned
from toolgate.sandbox.pipes import Descriptors

# In a network of its own nobody else has it.
PORT = 3128
_PROGRAM = Path(__file__).with_name("inside.py")
_PYTHON = os.path.realpath(sys.executable)


async def listening(pid: int, before: Sequence[str] = ()) -> socket.socket:
    """One for the network that a process is in; `OSError` where it cannot be had.

    The process must not have begun. `before`: the words that make a command somebody else's.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, Descriptors() as opened:
        nothing = opened.keep(os.open(os.devnull, os.O_RDWR))
        child = spawned(
            [*before, _PYTHON, "-I", "-S", "-c", _PROGRAM.read_text(), str(pid), str(PORT)],
            streams=(theirs.fileno(), nothing, nothing),
            given=(),
        )
        try:
            await child.over()
        finally:
            child.kill()
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1, socket.MSG_DONTWAIT)
    return socket.socket(fileno=descriptors[0])


async def handed_over(line: socket.socket) -> socket.socket | None:
    """The one that somebody in that network opens and sends; nothing where they end without."""
    loop = asyncio.get_running_loop()
    sent = asyncio.Event()
    loop.add_reader(line, sent.set)
    try:
        await sent.wait()
    finally:
        loop.remove_reader(line)
    _, descriptors, _, _ = socket.recv_fds(line, 1, 1, socket.MSG_DONTWAIT)
    return socket.socket(fileno=descriptors[0]) if descriptors else None
