"""Programs, run whole or talked to, in whichever kind of sandbox."""

import asyncio
import contextlib
import os
from collections.abc import Sequence

from msgspec.structs import replace

from toolgate import clock
from toolgate.errors import ProviderUnavailable
from toolgate.net.guard import Guard
from toolgate.sandbox.child import Child
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.egress.reach import Reach
from toolgate.sandbox.growth import Growth
from toolgate.sandbox.kind import Kind
from toolgate.sandbox.pipes import Descriptors, Inflow
from toolgate.sandbox.policy import MEMORY, PROCESSES, Policy, at_most
from toolgate.sandbox.roots import named
from toolgate.sandbox.sandbox import Ended, Finished, Running
from toolgate.sandbox.talking import Talking

_NANO = 1e-9
# A program that is ended by a signal is told of as shells do.
_BY_SIGNAL = 128
_MOST_SIGNAL = 64
_OUT_OF_CPU = -24
_KILLED = -9
# What clients of engines add behind the reason.
_ADVICE = ("Run '", "See '")


class Programs:
    """A sandbox: one kind of it, and how programs are begun and ended in it."""

    def __init__(self, kind: Kind, guard: Guard | None = None) -> None:
        """`guard`: what keeps the hosts of a policy from leading into private networks."""
        self._kind = kind
        self._guard = guard or Guard()

    @property
    def name(self) -> str:
        return self._kind.name

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        """Run to the end; whatever ends this ends the program too."""
        began_ns = clock.monotonic_ns()
        policy = self._complete(policy)
        with Descriptors() as opened:
            out, err = opened.pipe(), opened.pipe()
            streams = opened.holding(stdin), out[1], err[1]
            begun = self._kind.begin(argv, policy, folder, opened, streams, self._proxy(policy))
            kept = _Kept(policy.output, begun.child)
            flows = [
                Inflow(opened.released(out[0]), kept.out),
                Inflow(opened.released(err[0]), kept.err),
            ]
        in_time = True
        growth = _watched(policy, begun.child)
        try:
            async with asyncio.timeout(policy.seconds or None):
                await begun.ready()
                await begun.child.over()
        except TimeoutError:
            in_time = False
        finally:
            growth.leave()
            await _gone(begun.child)
            for flow in flows:
                flow.drain()
        code = _code(await begun.child.over())
        if begun.never_ran() and not begun.child.was_ended:
            raise cannot_start(bytes(kept.stderr))
        return Finished(
            ended=growth.ended or _why(begun.child, code, kept, in_time=in_time),
            code=code,
            stdout=bytes(kept.stdout),
            stderr=bytes(kept.stderr),
            seconds=(clock.monotonic_ns() - began_ns) * _NANO,
        )

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        """Start, and go on until it ends or is ended."""
        policy = replace(self._complete(policy), cpu=0)
        with Descriptors() as opened:
            incoming, out, err = opened.pipe(), opened.pipe(), opened.pipe()
            streams = incoming[0], out[1], err[1]
            begun = self._kind.begin(argv, policy, folder, opened, streams, self._proxy(policy))
            try:
                for each in streams:
                    os.close(opened.released(each))
                ends = incoming[1], out[0], err[0]
                running = await Talking.on(begun.child, opened, ends, most=policy.output)
            except BaseException:
                await _gone(begun.child)
                raise
        try:
            await begun.ready()
        except BaseException:
            running.hang_up()
            await _gone(begun.child)
            raise
        return running

    def _complete(self, policy: Policy) -> Policy:
        hosts = named(policy.hosts)
        if hosts and not self._kind.reaches:
            raise ProviderUnavailable(
                f"Programs in {self._kind.name} have no network, and this one is to reach hosts. "
                "Nothing ran. Take `hosts` away, or use bubblewrap."
            )
        return at_most(
            replace(policy, hosts=hosts),
            memory=policy.memory or MEMORY,
            processes=policy.processes or PROCESSES,
        )

    def _proxy(self, policy: Policy) -> Proxy | None:
        return Proxy(Reach.to(policy.hosts), self._guard) if policy.hosts else None


class _Kept:
    """What a program says, as far as it is kept; one that goes on is ended."""

    def __init__(self, most: int, child: Child) -> None:
        self._left = most
        self._child = child
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.is_full = False

    def out(self, piece: bytes) -> None:
        self._keep(self.stdout, piece)

    def err(self, piece: bytes) -> None:
        self._keep(self.stderr, piece)

    def _keep(self, stream: bytearray, piece: bytes) -> None:
        if len(piece) > self._left:
            self.is_full = True
            self._child.kill()
        stream += piece[: self._left]
        self._left -= min(len(piece), self._left)


class _Watched:
    """A program whose folders are watched, where it has any that it may write."""

    def __init__(self, growth: Growth | None) -> None:
        self._growth = growth
        self._task = None if growth is None else asyncio.create_task(growth.watch())

    @property
    def ended(self) -> Ended | None:
        """Why it is over, where that is why."""
        over = self._growth is not None and self._growth.is_too_much
        return Ended.TOO_MUCH_WRITTEN if over else None

    def leave(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _watched(policy: Policy, child: Child) -> _Watched:
    bounded = policy.writable and (policy.written or policy.files)
    return _Watched(Growth(policy, child.kill) if bounded else None)


async def _gone(child: Child) -> None:
    """End it, and wait until it is: the kernel does not take long, and the end is not in doubt."""
    if child.is_over:
        return
    child.kill()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(child.over(), 10)


def _code(given: int) -> int:
    if _BY_SIGNAL < given <= _BY_SIGNAL + _MOST_SIGNAL:
        return _BY_SIGNAL - given
    return given


def _why(child: Child, code: int, kept: _Kept, *, in_time: bool) -> Ended:
    if kept.is_full:
        return Ended.TOO_MUCH_OUTPUT
    if not in_time or code == _OUT_OF_CPU:
        return Ended.OUT_OF_TIME
    if child.ran_out_of_memory and code != 0:
        return Ended.OUT_OF_MEMORY
    return Ended.BY_SIGNAL if code < 0 else Ended.BY_ITSELF


def cannot_start(said: bytes) -> ProviderUnavailable:
    """Nothing was begun. What the sandbox says of it is for the operator, without paths."""
    words = said.decode("utf-8", "replace").strip().splitlines()
    telling = (line for line in reversed(words) if line and not line.startswith(_ADVICE))
    reason = next(telling, "it said nothing")
    return ProviderUnavailable(
        "The program could not be started in the sandbox. Nothing ran. Look at its command and "
        f"folders: {reason[:200]}"
    )
