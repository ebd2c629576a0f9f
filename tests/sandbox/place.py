"""A place to get out of: files shown, given, hidden and protected; listeners; a neighbour."""

import contextlib
import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolgate.sandbox.policy import MEGABYTE, Policy

ROOT = Path(__file__).resolve().parents[2]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a program is told of it, and who has been reached."""

    told: dict[str, Any]
    reached: list[str]
    protected: tuple[str, ...]

    def policy(self, *more: str) -> Policy:
        return Policy(
            readable=(self.told["shown"], str(ROOT / "tests"), *more),
            writable=(self.told["given"],),
            protected=self.protected,
            memory=256 * MEGABYTE,
            processes=32,
            open_files=64,
        )


@contextmanager
def made() -> Generator[Place]:
    """Anew each time: outside, the programs do what they try."""
    mark = secrets.token_hex(16)
    reached: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolgate-place-")))
        told = _files(folder, mark) | _listeners(stack, folder, mark, reached)
        told |= {"mark": mark, "pid": os.getpid(), "host": socket.gethostname()}
        temporary = stack.enter_context(tempfile.NamedTemporaryFile("w", prefix="toolgate-"))
        shared = stack.enter_context(tempfile.NamedTemporaryFile("w", dir="/dev/shm"))
        for file in (temporary, shared):
            file.write(mark)
            file.flush()
        victim = subprocess.Popen(["sleep", "600"], env={"MARK": mark}, start_new_session=True)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        # As careless as a descriptor can be left.
        descriptor = os.open(folder / "hidden" / "mark", os.O_RDONLY)
        stack.callback(os.close, descriptor)
        os.set_inheritable(descriptor, True)  # noqa: FBT003
        os.environ["TOOLGATE_ESCAPE_MARK"] = mark
        stack.callback(os.environ.pop, "TOOLGATE_ESCAPE_MARK")
        told |= {"temporary": temporary.name, "shared": shared.name, "victim": victim.pid}
        told |= {"descriptor": descriptor, "segment": _segment(stack)}
        given = folder / "given"
        protected = ("kept/settings.toml", "kept/second.toml", "empty/toolgate.toml")
        protected += ("empty/policies", "moved/policies", "linked/policies")
        yield Place(
            told=told, reached=reached, protected=tuple(str(given / each) for each in protected)
        )


def _files(folder: Path, mark: str) -> dict[str, Any]:
    for name in ("given", "shown", "hidden"):
        (folder / name).mkdir()
        (folder / name / "mark").write_text(mark)
        for file in ("spare", "other", "long"):
            (folder / name / file).write_text("something long")
    (folder / "hidden" / ".ssh").mkdir()
    (folder / "hidden" / ".ssh" / "id_ed25519").write_text(mark)
    given = folder / "given"
    for name in ("kept", "empty", "moved/policies", "linked", "elsewhere", "free"):
        (given / name).mkdir(parents=True)
    for name in ("settings", "second"):
        (given / "kept" / f"{name}.toml").write_text("")
    (given / "linked" / "policies").symlink_to(given / "elsewhere")
    return {name: str(folder / name) for name in ("given", "shown", "hidden")}


def _segment(stack: ExitStack) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    key = secrets.randbelow(2**30) + 1
    made = libc.shmget(key, 4096, 0o1600)
    stack.callback(libc.shmctl, made, 0, None)
    return key


def _listeners(stack: ExitStack, folder: Path, mark: str, reached: list[str]) -> dict[str, Any]:
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    path = str(folder / "hidden" / "socket")
    engine = _engine(stack, folder)
    abstract = f"toolgate-{mark[:8]}"
    wanted: dict[str, tuple[int, int, Any]] = {
        "tcp": (socket.AF_INET, stream, ("0.0.0.0", 0)),  # noqa: S104 - to be found by every way
        "tcp6": (socket.AF_INET6, stream, ("::1", 0)),
        "udp": (socket.AF_INET, datagram, ("127.0.0.1", 0)),
        "udp6": (socket.AF_INET6, datagram, ("::1", 0)),
        "unix": (socket.AF_UNIX, stream, path),
        "engine": (socket.AF_UNIX, stream, engine),
        "abstract": (socket.AF_UNIX, stream, f"\0{abstract}"),
        "abstract_datagram": (socket.AF_UNIX, datagram, f"\0{abstract}-datagram"),
    }
    told: dict[str, Any] = {"unix": path, "engine": engine, "abstract": abstract}
    told["abstract_datagram"] = f"{abstract}-datagram"
    for name, (family, kind, where) in wanted.items():
        listener = stack.enter_context(socket.socket(family, kind))
        listener.bind(where)
        told.setdefault(name, listener.getsockname()[1] if family != socket.AF_UNIX else "")
        serve = _echo_streams if kind == stream else _echo_datagrams
        _in_thread(stack, serve, listener, lambda name=name: reached.append(name))
    return told


def _engine(stack: ExitStack, folder: Path) -> str:
    """Where engines of containers listen: below /run, in a folder of this place's own."""
    try:
        made = tempfile.mkdtemp(prefix="toolgate-engine-", dir="/run")
    except OSError:
        # Not without root.
        made = str(folder / "hidden" / "run")
        Path(made).mkdir()
    stack.callback(shutil.rmtree, made, ignore_errors=True)
    return f"{made}/docker.sock"


def _in_thread(
    stack: ExitStack,
    serve: Callable[[socket.socket, Callable[[], None]], None],
    listener: socket.socket,
    reach: Callable[[], None],
) -> None:
    thread = threading.Thread(target=serve, args=(listener, reach), daemon=True)
    if listener.type == socket.SOCK_STREAM:
        listener.listen()
    thread.start()

    def over() -> None:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)

    stack.callback(over)


def _echo_streams(listener: socket.socket, reach: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while True:
            line, _ = listener.accept()
            reach()
            with line, contextlib.suppress(OSError):
                line.send(line.recv(99))


def _echo_datagrams(listener: socket.socket, reach: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while True:
            piece, back = listener.recvfrom(512)
            if not piece:
                return
            reach()
            listener.sendto(piece, back)
