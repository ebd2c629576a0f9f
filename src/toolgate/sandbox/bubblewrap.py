"""Programs in bubblewrap: name spaces of their own for everything, no capabilities, a filter.

Files, processes, network, users, names and groups are the program's own; what it may see of this
machine is mounted into it. It is held before its first instruction until its limits are bound.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import executable, seccomp
from toolgate.sandbox.cgroup import hierarchy
from toolgate.sandbox.child import Child, spawned
from toolgate.sandbox.egress.listening import listening
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.environment import SHARED, USER, WORK, accounts, variables
from toolgate.sandbox.limits import bind, group_for, words
from toolgate.sandbox.pipes import Descriptors, Inflow
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.programs import cannot_start
from toolgate.sandbox.roots import Mount, Shown, mounts
from toolgate.sandbox.ways import RefusedRootError
from toolgate.sandbox.ways import opened as opened_way
from toolgate.settings.outward import Sandbox as Settings

_START_SECONDS = 20.0
_CHILD = re.compile(rb'"child-pid": (\d+)\s*[,}]')
_RAN = b'"exit-code"'
_NOBODY = "65534"
_UNSHARED = ("user", "ipc", "pid", "net", "uts", "cgroup-try")
_MASKED = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/timer_list",
    "/proc/sysrq-trigger",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/kpagecgroup",
    "/proc/slabinfo",
    "/proc/vmallocinfo",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/modules",
    "/proc/config.gz",
    "/proc/cmdline",
)
_HOW = {Shown.READ: "--ro-bind", Shown.WRITE: "--bind", Shown.LINK: "--symlink"}
_EMPTY_BYTES = "4096"


class Bubblewrap:
    """bubblewrap, as it is found on PATH."""

    name = "bubblewrap"
    counts = True
    reaches = True

    def __init__(self, program: str) -> None:
        self.program = program
        self._groups = hierarchy()
        # The kernel does not count root's processes; without groups, somebody else has to run them.
        self._before = _dropping() if os.geteuid() == 0 and self._groups is None else ()

    def begin(
        self,
        argv: Sequence[str],
        policy: Policy,
        folder: str,
        opened: Descriptors,
        streams: tuple[int, int, int],
        proxy: Proxy | None = None,
    ) -> "_Begun":
        """Start it, held before its first instruction."""
        try:
            shown = mounts(policy)
            # What is opened here is what is mounted, whoever puts a link in its place meanwhile.
            ways = {
                mount.path: opened.keep(opened_way(mount.source))
                for mount in shown
                if mount.is_given
            }
            described = list(self.words(argv, policy, folder, shown, ways))
            executable.check(argv[0], shown, path=variables(policy)["PATH"], folder=folder or WORK)
            known = seccomp.program()
        except (RefusedRootError, seccomp.NoFilterError) as refused:
            raise ProviderUnavailable(f"Nothing ran in the sandbox: {refused}.") from None
        files = {path: opened.holding(text.encode()) for path, text in accounts().items()}
        status, hold = opened.pipe(), opened.pipe()
        rules = opened.holding(known)
        arguments = opened.holding(os.fsencode("\0".join((*_files(files), *described, ""))))
        given = {"--args": arguments, "--seccomp": rules, "--json-status-fd": status[1]}
        # It keeps the other end of what holds it: where this process is lost, it waits for good.
        given |= {"--block-fd": hold[0], "--sync-fd": hold[1]}
        options = [word for option, each in given.items() for word in (option, str(each))]
        group = group_for(policy, self._groups)
        # As somebody else it is bound by itself: without a right to that, root cannot do it.
        bound = words(policy) if self._before else ()
        child = spawned(
            [*self._before, self.program, *options, "--", *bound, *argv],
            streams=streams,
            given=(*given.values(), *files.values(), *ways.values()),
            group=group,
        )
        release = opened.released(hold[1])
        return _Begun(
            child,
            is_held=True,
            bind=None if bound else partial(bind, policy=policy, grouped=group is not None),
            status=opened.released(status[0]),
            release=release,
            way_out=None if proxy is None else partial(self._way_out, proxy=proxy, child=child),
        )

    async def _way_out(self, pid: int, *, proxy: Proxy, child: Child) -> None:
        """Let a proxy of ours listen in the network of a program that has not begun."""
        child.at_end(proxy.close)
        await proxy.serve(await listening(pid, self._before))

    def words(
        self,
        argv: Sequence[str],
        policy: Policy,
        folder: str,
        shown: Sequence[Mount],
        ways: Mapping[str, int],
    ) -> Iterator[str]:
        if not argv or any("\0" in word for word in argv):
            raise RefusedRootError("a command has a program, and no word of it holds a NUL")
        yield from _surroundings(policy.memory)
        for mount in shown:
            yield from _mounted(mount, ways)
        yield from ("--remount-ro", "/", "--chdir", folder or WORK, "--clearenv")
        for name, value in variables(policy).items():
            yield from ("--setenv", name, value)


class _Begun:
    """One that may be held until its limits are bound."""

    def __init__(
        self,
        child: Child,
        *,
        status: int,
        release: int,
        is_held: bool = False,
        bind: Callable[[int], None] | None = None,
        way_out: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self.child = child
        self._is_held = is_held
        self._bind = bind
        self._way_out = way_out
        self._release = release
        self._said = b""
        self._told = asyncio.Event()
        self._status = Inflow(status, self._hear)
        self._status.ended.add_done_callback(lambda _: self._told.set())
        child.at_kill(self._status.drain)
        child.at_end(self._close)

    async def ready(self) -> None:
        """Wait for its first process, bind that, and let it go."""
        if not self._is_held:
            return
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._told.wait()
        except TimeoutError:
            raise cannot_start(b"it did not start in time") from None
        found = _CHILD.search(self._said)
        if found is None:
            # It ended before there was a program; what it said of that is on its error stream.
            return
        try:
            if self._bind is not None:
                self._bind(int(found[1]))
            if self._way_out is not None:
                await self._opened(self._way_out(int(found[1])))
            os.write(self._release, b"x")
        except ProcessLookupError:
            return
        except OSError as error:
            raise cannot_start(f"its limits cannot be bound: {error.strerror}".encode()) from None

    async def _opened(self, way_out: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                await way_out
        except OSError as error:
            said = f"no proxy can be put into its network: {type(error).__name__}"
            raise cannot_start(said.encode()) from None
        # Its number was its own all the while; else somebody else may have got the proxy.
        self.child.check_inside()

    def never_ran(self) -> bool:
        """bubblewrap tells an exit code only of a program that it could start."""
        self._status.drain()
        return _RAN not in self._said

    def _hear(self, piece: bytes) -> None:
        self._said += piece
        found = None if self._told.is_set() else _CHILD.search(self._said)
        if found is not None:
            with contextlib.suppress(ProcessLookupError):
                self.child.inside(int(found[1]))
            self._told.set()
            # What else it says is looked at when it is over: until then nobody wakes up for it.
            self._status.rest()

    def _close(self) -> None:
        self._status.drain()
        os.close(self._release)


def found(_: Settings) -> Bubblewrap | str:
    """The one on PATH, or why there is none."""
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not on PATH (Debian: apt install bubblewrap)"
    if os.geteuid() == 0 and hierarchy() is None and shutil.which("setpriv") is None:
        return "neither groups that bound processes nor setpriv are here, and this runs as root"
    return Bubblewrap(str(Path(program).absolute()))


@functools.lru_cache(maxsize=16)
def _surroundings(memory: int) -> tuple[str, ...]:
    """What is the same for every program that may use so much memory."""
    size = ("--size", str(memory), "--tmpfs")
    # Files of the kernel's that tell of this machine.
    masked = [("--ro-bind", "/dev/null", path) for path in filter(os.path.exists, _MASKED)]
    return (
        *(f"--unshare-{each}" for each in _UNSHARED),
        *("--disable-userns", "--new-session", "--die-with-parent", "--cap-drop", "ALL"),
        *("--uid", str(USER), "--gid", str(USER), "--hostname", "sandbox"),
        *(*size, WORK, "--proc", "/proc", "--dev", "/dev"),
        *(*size, SHARED, "--remount-ro", "/dev"),
        *itertools.chain.from_iterable(masked),
        # As root, even without any right, a program could write the kernel's settings here.
        *("--remount-ro", "/proc"),
    )


def _dropping() -> tuple[str, ...]:
    return ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--")


def _mounted(mount: Mount, ways: Mapping[str, int]) -> Iterator[str]:
    if mount.shown is Shown.EMPTY:
        yield from ("--size", _EMPTY_BYTES, "--tmpfs", mount.path, "--remount-ro", mount.path)
    elif mount.path in ways:
        yield from (f"{_HOW[mount.shown]}-fd", str(ways[mount.path]), mount.path)
    else:
        yield from (_HOW[mount.shown], mount.source, mount.path)


def _files(files: Mapping[str, int]) -> Iterator[str]:
    for path, descriptor in files.items():
        yield from ("--file", str(descriptor), path)
