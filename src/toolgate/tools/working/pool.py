"""Processes that compute for tools, kept warm, and ended when one takes too long."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from toolgate import clock
from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.executor.resilience.places import Places
from toolgate.sandbox import seccomp
from toolgate.sandbox.choosing import NoSandbox, Refusing
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.sandbox import Running, Sandbox
from toolgate.tools.working.compiled import LOOPS, MADE, TAKEN, Compiled
from toolgate.tools.working.confined import CONFINED, own
from toolgate.tools.working.parcel import Parcel
from toolgate.tools.working.plainly import started
from toolgate.tools.working.worker import LARGEST, LENGTHS

MEMORY = 512 * MEGABYTE
_ARGV = (sys.executable, "-I", "-m", "toolgate.tools.working.worker")
# As many as there are cores compute at a time for one tenant, and as many more for others.
_MOST = 2 * max(1, min(2, os.cpu_count() or 1))
_WAITING = 64
# A worker that has nothing to do for so long is not kept.
_IDLE = 120.0
# What libraries leave behind does not pile up.
_USES = 1_000
# Only the system is waited for, which may be busy.
_START = 30.0
_HEAVIEST = 64 * MEGABYTE
# So much is written at once, so that what is large does not wait in memory twice.
_SLICE = 256 * 1024
_NO_THREADS: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class _Worker:
    """One process, busy with one request at a time."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.uses = 0
        # Modules whose compiled loops it has.
        self.has: set[str] = set()
        self.since_ns = clock.monotonic_ns()

    async def ask(self, request: dict[str, Any], content: bytes) -> Parcel:
        """The answer; `EOFError` where it has ended."""
        raw = orjson.dumps(request)
        try:
            self.running.stdin.write(LENGTHS.pack(len(raw), len(content)) + raw)
            for at in range(0, len(content), _SLICE):
                await self.running.stdin.drain()
                self.running.stdin.write(content[at : at + _SLICE])
            await self.running.stdin.drain()
            head = await self.running.stdout.readexactly(LENGTHS.size)
            length, weight = LENGTHS.unpack(head)
            if length > 2 * LARGEST or weight > _HEAVIEST:
                raise EOFError
            told = orjson.loads(await self.running.stdout.readexactly(length))
            return Parcel(told, await self.running.stdout.readexactly(weight))
        except (OSError, asyncio.IncompleteReadError):
            raise EOFError from None


class Workers:
    """A few, of which a tenant has half. They run in the sandbox where there is one.

    What they run is ours and bounded, so that without a sandbox they run all the same, kept in by
    the kernel alone; and where that cannot be done either, not at all.
    """

    def __init__(
        self,
        sandbox: Callable[[], Awaitable[Sandbox]],
        *,
        memory: int = MEMORY,
        kept: Path | None = None,
    ) -> None:
        """`kept`: a folder of the house's own, in which compiled loops outlast this process."""
        self._sandbox = sandbox
        self._memory = memory
        self._compiled = Compiled(kept)
        self._why_none: str | None = None
        self._places = Places(_MOST, each=_MOST // 2, waiting=_WAITING)
        self._idle: list[_Worker] = []
        self._is_closed = False

    async def run(
        self, function: str, args: dict[str, Any], *, seconds: float, starts: bool = False
    ) -> Any:
        """What a function of ours gives: `toolgate.tools.…:name`, called by name with plain JSON.

        A `ToolError` says that it took too long or used too much; the process that did is gone.
        `starts`: it runs another program, which happens in a sandbox only.
        """
        if starts and (refusal := await self._refusal()):
            raise NoSandbox(refusal)
        return (await self.ask(function, args, seconds=seconds)).value

    async def ask(
        self, function: str, args: dict[str, Any], *, seconds: float, content: bytes | None = None
    ) -> Parcel:
        """The same, with bytes that the function gets as its `data`, and bytes that it gives."""
        if self._is_closed:
            raise ProviderUnavailable("The house is closing. Nothing ran: try again later.")
        request = {"function": function, "args": args, "weighty": content is not None}
        async with self._places.held():
            return await self._answered(request, content or b"", seconds)

    async def close(self) -> None:
        """No process is left."""
        self._is_closed = True
        gone, self._idle = self._idle, []
        for worker in gone:
            await worker.running.end(0)

    async def _answered(self, request: dict[str, Any], content: bytes, seconds: float) -> Parcel:
        module = request["function"].partition(":")[0]
        code: bytes | None = None
        if module in LOOPS and not any(module in one.has for one in self._idle):
            code = await asyncio.to_thread(self._compiled.read, module)
        worker = await self._ready(module, code)
        is_whole = False
        try:
            async with asyncio.timeout(seconds):
                await self._prepare(worker, module, code)
                answer, weight = await worker.ask(request, content)
            is_whole = True
        except TimeoutError:
            raise ToolError(
                f"It was not done in {seconds:g} seconds and was ended. Ask for less: a smaller "
                "input, fewer steps, or a simpler expression."
            ) from None
        except EOFError:
            raise ToolError(
                "The process that computed it ended before it was done, most likely because it "
                "used too much memory. Ask for less."
            ) from None
        finally:
            worker.uses += 1
            if is_whole and worker.uses < _USES and not self._is_closed:
                worker.since_ns = clock.monotonic_ns()
                self._idle.append(worker)
            else:
                # Nothing waits for it: also not whoever was cancelled here.
                await asyncio.shield(worker.running.end(0))
        if "refused" in answer:
            raise ToolError(answer["refused"])
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return Parcel(answer["result"], weight)

    async def _prepare(self, worker: _Worker, module: str, code: bytes | None) -> None:
        """Give it the loops that a module needs, or have it compile them for those to come."""
        if module not in LOOPS or module in worker.has:
            return
        worker.has.add(module)
        if code is not None:
            await worker.ask({"function": TAKEN, "args": {}, "weighty": True}, code)
        elif not worker.uses:
            # It has computed nothing for anybody yet.
            asked = {"function": MADE, "args": {"module": module}, "weighty": False}
            _told, found = await worker.ask(asked, b"")
            await asyncio.to_thread(self._compiled.keep, module, found)

    async def _ready(self, module: str, code: bytes | None) -> _Worker:
        # One that has the loops already is as good as any; one that is to compile them is new.
        fit = [one for one in self._idle if module in one.has]
        is_any = module not in LOOPS or code is not None
        while fit or (is_any and self._idle):
            worker = fit.pop() if fit else self._idle[-1]
            self._idle.remove(worker)
            if clock.monotonic_ns() - worker.since_ns < _IDLE * 1e9:
                return worker
            await worker.running.end(0)
        while len(self._idle) >= _MOST:
            await self._idle.pop(0).running.end(0)
        return _Worker(await self._started())

    async def _refusal(self) -> str:
        """Why there is no sandbox; nothing where there is one, which stays so."""
        if self._why_none is None:
            sandbox = await self._sandbox()
            self._why_none = sandbox.refusal if isinstance(sandbox, Refusing) else ""
        return self._why_none

    async def _started(self) -> Running:
        argv = (*_ARGV, str(self._memory))
        sandbox = await self._sandbox()
        if not isinstance(sandbox, Refusing):
            return await sandbox.start(argv, _policy(self._memory))
        return await _alone(argv, sandbox.refusal)


async def _alone(argv: Sequence[str], refusal: str) -> Running:
    """One outside of a sandbox, which has been kept in before anybody asks it for anything."""
    why = "the kernel does not filter its calls"
    try:
        rules = await asyncio.to_thread(seccomp.program, alone=True)
        running = await started(argv, _NO_THREADS)
        try:
            async with asyncio.timeout(_START):
                asked = {"folder": running.folder}
                told, _ = await _Worker(running).ask(
                    {"function": CONFINED, "args": asked, "weighty": True}, rules
                )
            if "result" in told:
                return running
        except (TimeoutError, EOFError):
            why = "it did not start"
        except BaseException:
            await asyncio.shield(running.end(0))
            raise
        await running.end(0)
    except seccomp.NoFilterError as missing:
        why = str(missing)
    raise NoSandbox(f"{refusal} Nor can what computes be kept in without one: {why}.")


def _policy(memory: int) -> Policy:
    return Policy(
        readable=own(),
        env={**_NO_THREADS, "NUMBA_CACHE_DIR": "/tmp/numba"},  # noqa: S108  its own, in the sandbox
        memory=memory,
        processes=32,
        cpu=0,
        seconds=0,
    )
