"""Programs in gVisor: they meet a kernel of their own, written in Go, and never the machine's.

For tenants that are hostile to each other. It needs root, and groups of processes: its limits are
those of the group around all of it.
"""

import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import executable, seccomp
from toolgate.sandbox.cgroup import Hierarchy, hierarchy
from toolgate.sandbox.child import Child, spawned
from toolgate.sandbox.egress.listening import PORT, handed_over
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.environment import SHARED, WORK, accounts, variables
from toolgate.sandbox.pipes import Descriptors
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.roots import Mount, Shown, mounts
from toolgate.sandbox.ways import RefusedRootError
from toolgate.sandbox.ways import opened as opened_way
from toolgate.settings.outward import Sandbox as Settings

# What its kernel uses itself, on top of what the program may.
_OWN_MEMORY = 128 * MEGABYTE
_OWN_PROCESSES = 512
# It puts the folders where gVisor takes them from, and becomes gVisor.
_BEFORE = Path(__file__).with_name("standing.py")
FIRST = (os.path.realpath(sys.executable), "-I", "-S", "-c", _BEFORE.read_text())
_NAMESPACES = ("pid", "ipc", "uts", "mount")


class Gvisor:
    """gVisor's `runsc`, as it is found on PATH."""

    name = "gVisor"
    counts = False
    reaches = True

    def __init__(self, program: str, groups: Hierarchy) -> None:
        self._program = program
        self._groups = groups

    def begin(
        self,
        argv: Sequence[str],
        policy: Policy,
        folder: str,
        opened: Descriptors,
        streams: tuple[int, int, int],
        proxy: Proxy | None = None,
    ) -> "_Begun":
        """Start it, in its group from the first moment."""
        if not argv or any("\0" in word for word in argv):
            raise ProviderUnavailable(
                "A command has a program, and no word with a NUL. Nothing ran."
            )
        bundle = Path(tempfile.mkdtemp(prefix="toolgate-gvisor-"))
        try:
            shown = mounts(policy)
            for mount in shown:
                if mount.is_given:
                    # A look beforehand, which can say what is wrong.
                    os.close(opened_way(mount.source))
            executable.check(argv[0], shown, path=variables(policy)["PATH"], folder=folder or WORK)
            standing = _standing(bundle, shown)
            _furnish(bundle / "rootfs", shown)
            described = _description(
                argv, policy, folder, shown, standing, reaches=proxy is not None
            )
            (bundle / "config.json").write_bytes(orjson.dumps(described))
            given = {place: source for source, place in standing.items()}
            (bundle / "given.json").write_bytes(orjson.dumps(given))
            ends = () if proxy is None else socket.socketpair()
            lines = [opened.keep(end.detach()) for end in ends]
            child = spawned(
                [*FIRST, str(bundle), *self._words(bundle, *lines[1:])],
                streams=streams,
                given=lines[1:],
                group=self._groups.make(
                    memory=policy.memory + _OWN_MEMORY, processes=policy.processes + _OWN_PROCESSES
                ),
                is_whole=True,
            )
        except RefusedRootError as refused:
            shutil.rmtree(bundle, ignore_errors=True)
            raise ProviderUnavailable(f"Nothing ran in the sandbox: {refused}.") from None
        except OSError as error:
            shutil.rmtree(bundle, ignore_errors=True)
            raise ProviderUnavailable(
                f"The sandbox could not be made: {error.strerror}. Nothing ran."
            ) from None
        if proxy is None:
            return _Begun(child, bundle)
        return _Begun(child, bundle, _WayOut(proxy, opened.released(lines[0])))

    def _words(self, bundle: Path, handed_over: int | None = None) -> Iterator[str]:
        # The network is one that its first process makes, or none.
        yield "" if handed_over is None else f"{handed_over}:{PORT}"
        network = "none" if handed_over is None else "host"
        yield from (self._program, f"--network={network}", "--ignore-cgroups", "--oci-seccomp")
        yield from (f"--root={bundle / 'state'}", f"--log={bundle / 'log'}")
        yield from ("run", f"--bundle={bundle}", f"toolgate-{secrets.token_hex(8)}")


class _WayOut:
    """A proxy of ours, which is to listen in the network of a program that is being started."""

    def __init__(self, proxy: Proxy, line: int) -> None:
        self._proxy = proxy
        self._line = socket.socket(fileno=line)
        self._is_waiting = False

    async def open(self) -> None:
        """Who connects before that waits; where the network could not be made, nobody does."""
        self._is_waiting = True
        with self._line:
            listener = await handed_over(self._line)
        if listener is not None:
            await self._proxy.serve(listener)

    def close(self) -> None:
        self._proxy.close()
        # Whoever waits for it hears that nobody is at its other end, and closes it then.
        if not self._is_waiting:
            self._line.close()


class _Begun:
    def __init__(self, child: Child, bundle: Path, way_out: _WayOut | None = None) -> None:
        self.child = child
        self._bundle = bundle
        self._way_out = way_out
        self._begun = False
        child.at_end(self._end)

    async def ready(self) -> None:
        """Its group bounds it already."""
        if self._way_out is not None:
            await self._way_out.open()

    def never_ran(self) -> bool:
        """Its folders could not be put where it takes them from. Of what comes after that, it
        says so by an exit code that a program can have too: then it counts as run."""
        return not self._begun

    def _end(self) -> None:
        if self._way_out is not None:
            self._way_out.close()
        self._begun = (self._bundle / "begun").exists()
        shutil.rmtree(self._bundle, ignore_errors=True)


def found(_: Settings) -> Gvisor | str:
    """The one on PATH, or why there is none."""
    program, groups = shutil.which("runsc"), hierarchy()
    if program is None:
        return "runsc is not on PATH (Debian: apt install runsc)"
    if os.geteuid() != 0:
        return "it needs root, and toolgate does not run as root"
    if groups is None:
        return (
            "it needs control groups for memory and processes, and none can be made here: give "
            "toolgate's service its own (systemd: Delegate=yes and DelegateSubgroup=), or mount "
            "/sys/fs/cgroup writable into its container"
        )
    return Gvisor(str(Path(program).absolute()), groups)


def _standing(bundle: Path, shown: Sequence[Mount]) -> Mapping[str, str]:
    """Where each folder that is given stands for gVisor, by where it is."""
    (bundle / "given").mkdir()
    sources = dict.fromkeys(mount.source for mount in shown if mount.is_given)
    return {source: f"{bundle}/given/{number}" for number, source in enumerate(sources)}


def _furnish(root: Path, shown: Sequence[Mount]) -> None:
    """The root that it sees: links, and files that say who it is; all else is mounted."""
    for path, content in accounts().items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    for mount in shown:
        if mount.shown is Shown.LINK:
            (root / mount.path.lstrip("/")).symlink_to(mount.source)


def _description(
    argv: Sequence[str],
    policy: Policy,
    folder: str,
    shown: Sequence[Mount],
    standing: Mapping[str, str],
    *,
    reaches: bool,
) -> dict[str, Any]:
    """As the Open Container Initiative has it."""
    namespaces = _NAMESPACES if reaches else (*_NAMESPACES, "network")
    limits = {"NOFILE": policy.open_files, "FSIZE": policy.file_size, "CORE": 0}
    if policy.cpu > 0:
        limits["CPU"] = max(int(policy.cpu), 1)
    return {
        "ociVersion": "1.0.0",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(argv),
            "env": [f"{name}={value}" for name, value in variables(policy).items()],
            "cwd": folder or WORK,
            "capabilities": {},
            "noNewPrivileges": True,
            "rlimits": [
                {"type": f"RLIMIT_{name}", "soft": most, "hard": most}
                for name, most in limits.items()
            ],
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "sandbox",
        "mounts": list(_mounted(policy, shown, standing)),
        "linux": {
            "namespaces": [{"type": each} for each in namespaces],
            "seccomp": seccomp.described(),
        },
    }


def _mounted(
    policy: Policy, shown: Sequence[Mount], standing: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    size = f"size={policy.memory}"
    yield {"destination": "/proc", "type": "proc", "source": "proc"}
    for path in (WORK, SHARED):
        yield {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": [size]}
    for mount in shown:
        if mount.shown is Shown.EMPTY:
            yield {
                "destination": mount.path,
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["ro"],
            }
        elif mount.shown is not Shown.LINK:
            how = ["rbind", "rw" if mount.shown is Shown.WRITE else "ro"]
            source = standing[mount.source] if mount.is_given else mount.source
            bound = {"destination": mount.path, "source": source, "options": how}
            yield {**bound, "type": "bind"}
