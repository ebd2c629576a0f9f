"""Servers as real processes: toolgate as anybody starts it, and the ungoverned ones beside it.

All of them stand on the first core, where there are two; only one is asked at a time.
"""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.load import LOOPBACK, pinned
from benchmarks.start import PATIENCE_SECONDS, command, free_port
from benchmarks.wires import OLD, TOOL, message

SETTINGS = """\
[tools]
builtin = []
refresh = 0
"""
# Of everything that can be limited there is a limit, which nobody meets.
LIMITS = """
[limits]
tenant = "1000000/second"
persona = "1000000/second"
tool = "1000000/second"
"""
MODULE = '''\
"""What the measured tools do."""


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def anything(**arguments: object) -> None:
    """Take whatever a schema asks for."""
'''
_NUMBER = {"type": "integer"}
ADD: dict[str, Any] = {
    "name": TOOL,
    "description": "Add two numbers.",
    "config": {"module": "measured_tools", "function": "add"},
    "effect": "pure",
    "input_schema": {
        "type": "object",
        "properties": {"a": _NUMBER, "b": _NUMBER},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "output_schema": {"type": "object", "properties": {"sum": _NUMBER}, "required": ["sum"]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A server that answers: where, by which process, and with which agent's key."""

    pid: int
    port: int
    key: str = ""


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def toolgate(
    more: Sequence[dict[str, Any]] = (),
    *,
    own: bool = True,
    settings: str = "",
    is_limited: bool = True,
    core: int | None = 0,
    key: str = "",
) -> Generator[House]:
    """`toolgate serve` in a folder of its own, with `add` and `more` tools and nothing built in.

    `own`: whether `add` runs there; `settings` are added to its own; `core`: the one it stands on,
    or all of them; `key`: an agent's, where its store is not new and none is made.
    """
    with (
        TemporaryDirectory(prefix="toolgate-bench-") as folder,
        (Path(folder) / "log").open("wb") as log,
    ):
        root = Path(folder)
        (root / "tools").mkdir()
        tools = _tools(more, own=own, is_limited=is_limited)
        (root / "tools" / "measured.json").write_text(tools, "utf-8")
        (root / "measured_tools.py").write_text(MODULE, "utf-8")
        toml = SETTINGS + (LIMITS if is_limited else "") + settings
        (root / "toolgate.toml").write_text(toml, "utf-8")
        process = subprocess.Popen(  # noqa: S603
            [command(), "serve", "--port", "0", "--json"],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=None if core is None else partial(pinned, core),  # noqa: PLW1509  no threads
        )
        try:
            greeting = _greeting(process, root / "log")
            port = int(greeting["url"].rsplit(":", 1)[1])
            yield House(pid=process.pid, port=port, key=key or greeting["keys"]["agent"])
        finally:
            _ended(process)
            assert process.stdout is not None
            process.stdout.close()


def _tools(more: Sequence[dict[str, Any]], *, own: bool, is_limited: bool) -> str:
    add = ADD | {"rate_limit": "1000000/second"} if is_limited else ADD
    return json.dumps({"tools": [*([add] if own else []), *more]})


def _last_word(log: Path) -> str:
    return " ".join(log.read_text("utf-8").strip().splitlines()[-1:])


def _greeting(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line == b"}\n":
            return json.loads(text)
    raise RuntimeError(f"it ended with {process.wait()}: {text.decode()} {_last_word(log)}")


def ungoverned(name: str) -> AbstractContextManager[House]:
    """One of `benchmarks.servers`."""
    return started("benchmarks.servers", name)


@contextmanager
def started(module: str, name: str, *more: str) -> Generator[House]:
    """One of a module's servers, on a port of its own."""
    port = free_port()
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        told = Path(folder) / "log"
        with told.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", module, name, str(port), *more],
                stdout=log,
                stderr=log,
            )
            try:
                until = time.monotonic() + PATIENCE_SECONDS
                while not _listens(port):
                    if process.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"it did not start: {_last_word(told)}")
                    time.sleep(0.02)
                yield House(pid=process.pid, port=port)
            finally:
                _ended(process)


def session(house: House) -> str:
    """A session of the older revision; empty where the server keeps none."""
    hello = {
        "protocolVersion": OLD,
        "capabilities": {},
        "clientInfo": {"name": "benchmarks", "version": "1"},
    }
    headers, body = message("initialize", hello, port=house.port, key=house.key, revision=OLD)
    connection = http.client.HTTPConnection(LOOPBACK, house.port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("POST", "/mcp", body=body, headers=headers)
        response = connection.getresponse()
        said = response.read()
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise RuntimeError(f"initialize was answered {response.status} {said[:200]!r}")
    return response.headers.get("Mcp-Session-Id", "")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
