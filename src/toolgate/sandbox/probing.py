"""Whether a sandbox holds here: a program that tries, and somebody outside who looks.

Each thing that has to fail is shown to work outside first, so that a failure says something.
"""

import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.sandbox import Ended, Sandbox

_PROGRAM = Path(__file__).with_name("probe.py")
_PYTHON = os.path.realpath(sys.executable)
_PROCESSES = 8
# What the program tries: what has to work, and what has to fail, each with what is wrong otherwise.
_HAS_TO = {
    "write_inside": "a program cannot write into a folder that it was given",
    "read_inside": "a program cannot read a folder that it was given",
}
_MUST_NOT = {
    "read_outside": "a program could read a file outside its folders",
    "write_outside": "a program could write outside its folders",
    "write_readable": "a program could write into a folder that it may only read",
    "write_protected": "a program could change a file that is protected",
    "connect": "a program could connect to a server on this machine",
    "see_environment": "a program could see the variables of this process",
    "many_processes": "the number of processes is not bound",
    "many_files": "the number of open files is not bound",
}


async def weakness(sandbox: Sandbox, *, counts: bool = True) -> str:
    """Why this sandbox cannot be used, in words for an operator; nothing where it holds.

    `counts`: whether one process too many is refused, or ends everything, which is not tried.
    """
    with (
        tempfile.TemporaryDirectory(prefix="toolgate-probe-") as folder,
        socket.socket() as listener,
    ):
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return await _tried(sandbox, Path(folder), listener, counts=counts)


async def _tried(sandbox: Sandbox, folder: Path, listener: socket.socket, *, counts: bool) -> str:
    name, mark = f"TOOLGATE_PROBE_{secrets.token_hex(4).upper()}", secrets.token_hex(16)
    _furnish(folder, mark)
    told = {"folder": str(folder), "port": listener.getsockname()[1], "mark": mark}
    told |= {"processes": _PROCESSES if counts else 0, "files": 64}
    policy = Policy(
        readable=(str(folder / "shown"), *interpreter()),
        writable=(str(folder / "given"),),
        protected=(str(folder / "given" / "kept" / "settings.toml"),),
        memory=256 * MEGABYTE,
        processes=_PROCESSES,
        open_files=64,
        seconds=20,
    )
    os.environ[name] = mark
    try:
        argv = [_PYTHON, "-I", "-S", "-c", _PROGRAM.read_text()]
        done = await sandbox.run(argv, policy, stdin=json.dumps(told).encode())
    except ProviderUnavailable as refused:
        return refused.message
    finally:
        del os.environ[name]
    if done.ended is not Ended.BY_ITSELF or done.code != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"a program could not run in it: {said[-1][:200] if said else done.ended}"
    found: Mapping[str, Any] = json.loads(done.stdout)
    return next(_faults(found, folder, listener, mark), "")


def _furnish(folder: Path, mark: str) -> None:
    for place in ("given", "shown", "hidden"):
        (folder / place).mkdir()
        (folder / place / "mark").write_text(mark)
    (folder / "given" / "kept").mkdir()
    # Whoever runs it: what keeps it away is to be the sandbox, and not the mode of a file.
    folder.chmod(0o755)
    (folder / "given").chmod(0o777)


def _faults(
    found: Mapping[str, Any], folder: Path, listener: socket.socket, mark: str
) -> Iterator[str]:
    for what, wrong in _HAS_TO.items():
        if found.get(what) is not True:
            yield wrong
    for what, wrong in _MUST_NOT.items():
        if found.get(what) is not False:
            yield wrong
    # What the program says of itself is one side; here is the other.
    written = folder / "given" / "written"
    if not written.is_file() or written.read_text() != mark:
        yield _HAS_TO["write_inside"]
    if (folder / "hidden" / "written").exists() or (folder / "shown" / "written").exists():
        yield _MUST_NOT["write_outside"]
    if (folder / "given" / "kept" / "settings.toml").exists():
        yield _MUST_NOT["write_protected"]
    if _was_called(listener):
        yield _MUST_NOT["connect"]
    with socket.create_connection(listener.getsockname(), timeout=5):
        if not _was_called(listener, wait=5):
            yield "whether it keeps a program from the network could not be tried"


def _was_called(listener: socket.socket, wait: float = 0) -> bool:
    listener.settimeout(wait)
    try:
        listener.accept()[0].close()
    except (BlockingIOError, TimeoutError):
        return False
    return True


def interpreter() -> tuple[str, ...]:
    """The folders without which this Python does not run, where the system's do not hold them."""
    return tuple(
        folder
        for folder in dict.fromkeys((os.path.realpath(sys.base_prefix),))
        if not folder.startswith("/usr/") and folder != "/usr"
    )
