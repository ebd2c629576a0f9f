"""Work in a process of its own: the time, the memory and the interpreter that it takes are not
those of the house that asks for it, and it can be ended.

A proof looks at every record there is, and a policy that somebody tries may never come to an end.
So one runs at a time, of each tenant one runs or waits, and none outlives who asked for it.
"""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from toolgate.errors import (
    InvalidPolicy,
    InvalidRequest,
    Overloaded,
    PolicyUnavailable,
    StoreUnavailable,
    ToolgateError,
)
from toolgate.gate.decision import Decision
from toolgate.gate.replay import Replay, replay
from toolgate.settings.settings import Settings
from toolgate.storage import MEMORY, connect, prepare
from toolgate.store.trail import TableTrail
from toolgate.tenancy.audit import Anchor, Exported, Mark, Proof

T = TypeVar("T")
_VERIFY, _REPLAY = "verify", "replay"
# A proof takes as long as the log is long; whoever waits for it gives up sooner.
_PROOF_SECONDS = 3_600.0
_REPLAY_SECONDS = 60.0
# What a proof keeps in mind grows with the calls that there were.
_MEMORY = 4 * 1024**3
_AGAIN_S = 5
_PR_SET_PDEATHSIG = 1
_Files = Mapping[str, str]
# What else a process can say; all others mean that it could not use the store.
_REFUSALS: Mapping[str, type[ToolgateError]] = {
    one.code: one for one in (InvalidRequest, PolicyUnavailable)
}


class _Verify(msgspec.Struct, array_like=True):
    tenant: str | None
    kept: list[str]


class _Replay(msgspec.Struct, array_like=True):
    files: dict[str, str] | None
    stored: dict[str, str]
    decisions: list[Decision]


class _Asked(msgspec.Struct, array_like=True):
    job: str
    root: str
    settings: bytes
    given: bytes
    seconds: float
    house: int


class _Answered(msgspec.Struct, array_like=True):
    """What came of it, or how it was refused: a code, and the sentence or the problems."""

    done: bytes = b""
    code: str = ""
    said: tuple[str, ...] = ()


class _Turns:
    """One at a time; of each tenant one that runs or waits, so that none keeps the others out."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._there: set[str] = set()

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncGenerator[None]:
        """When it comes; `Overloaded` where there is one of theirs already."""
        if whose in self._there:
            raise Overloaded(
                "One of these runs or waits already; nothing was begun. Ask again when it is done.",
                retry_after=_AGAIN_S,
            )
        self._there.add(whose)
        try:
            async with self._one:
                yield
        finally:
            self._there.discard(whose)


class ProvenApart:
    """A store's trail whose proof is made apart, one at a time."""

    def __init__(self, settings: Settings, trail: TableTrail) -> None:
        self._settings = settings
        self._trail = trail
        self._turns = _Turns()

    async def anchors(self, tenant: str | None = None) -> list[Anchor]:
        """The newest link of each chain."""
        return await self._trail.anchors(tenant)

    async def verify(self, *, tenant: str | None = None, kept: Collection[str] = ()) -> Proof:
        """Look at everything again. `kept`: anchors that have to be in a chain."""
        if self._settings.store.url == MEMORY:
            # No other process sees it.
            return await self._trail.verify(tenant=tenant, kept=kept)
        async with self._turns.turn(tenant or ""):
            asked = _Verify(tenant, list(kept))
            return await _apart(self._settings, _VERIFY, asked, Proof, _PROOF_SECONDS)

    async def export(self, tenant: str | None, after: Mark | None, *, most: int) -> Exported:
        """Hand out about so many records and seals, each seal behind its records."""
        return await self._trail.export(tenant, after, most=most)


class ReplayedApart:
    """Another policy is asked apart, one at a time: nobody knows yet what it takes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = _Turns()

    async def __call__(
        self, decisions: Collection[Decision], files: _Files | None, stored: _Files
    ) -> Replay:
        """Ask the policy of these files, or of the folder of the settings, with what is stored."""
        asked = _Replay(None if files is None else dict(files), dict(stored), list(decisions))
        # Only those who look after the whole house ask for it.
        async with self._turns.turn(""):
            return await _apart(self._settings, _REPLAY, asked, Replay, _REPLAY_SECONDS)


async def _apart(
    settings: Settings, job: str, given: msgspec.Struct, kind: type[T], seconds: float
) -> T:
    said = settings.model_dump_json(exclude_unset=True).encode()
    raw = msgspec.msgpack.encode(given)
    whole = _Asked(job, str(settings.root), said, raw, seconds, os.getpid())
    asked = msgspec.msgpack.encode(whole)
    process = await asyncio.create_subprocess_exec(
        # Not from where it is started: whoever writes there would be run.
        *(sys.executable, "-P", "-m", __spec__.name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # A terminal's Ctrl-C is for the house.
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            told, _ = await process.communicate(asked)
    except TimeoutError:
        raise InvalidRequest(
            f"This took more than {seconds:g} seconds and was ended. Nothing was changed: ask for "
            "less, or run it where the store is, without --url."
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return _read(told, kind)


def _read(told: bytes, kind: type[T]) -> T:
    try:
        answered = msgspec.msgpack.decode(told, type=_Answered)
    except msgspec.DecodeError:
        raise StoreUnavailable(
            "The process that was to do this ended before it was done; try again. Where memory is "
            "short, run it elsewhere, without --url."
        ) from None
    if answered.code == InvalidPolicy.code:
        raise InvalidPolicy(list(answered.said))
    if answered.code:
        raise _REFUSALS.get(answered.code, StoreUnavailable)(answered.said[0])
    return msgspec.msgpack.decode(answered.done, type=kind)


async def _verified(settings: Settings, given: _Verify) -> Proof:
    database = connect(settings)
    try:
        await prepare(settings, database)
        return await TableTrail(database).verify(tenant=given.tenant, kept=given.kept)
    finally:
        await database.close()


async def _replayed(settings: Settings, given: _Replay) -> Replay:
    from toolgate.policies import drafted  # noqa: PLC0415  only the process itself pays for it

    return await replay(given.decisions, drafted(settings, given.files, given.stored))


_JOBS: Mapping[str, tuple[Callable[[Settings, Any], Awaitable[Any]], type[msgspec.Struct]]] = {
    _VERIFY: (_verified, _Verify),
    _REPLAY: (_replayed, _Replay),
}


def _bound(asked: _Asked) -> None:
    """Ended with the house, however that ends; and by what it uses, whoever watches."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != asked.house:
        # It was gone before that.
        raise SystemExit(1)
    most = round(asked.seconds) + 1
    for kind, bound in (
        (resource.RLIMIT_CPU, most),
        (resource.RLIMIT_DATA, _MEMORY),
        (resource.RLIMIT_CORE, 0),
    ):
        # Not where less is allowed already.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (bound, bound))


async def _worked(asked: _Asked) -> _Answered:
    work, kind = _JOBS[asked.job]
    settings = Settings.model_validate_json(asked.settings)
    settings = settings.model_copy(update={"root": Path(asked.root)})
    try:
        done = await work(settings, msgspec.msgpack.decode(asked.given, type=kind))
    except InvalidPolicy as error:
        return _Answered(code=error.code, said=tuple(map(str, error.problems)))
    except ToolgateError as error:
        return _Answered(code=error.code, said=(error.message,))
    return _Answered(msgspec.msgpack.encode(done))


def main() -> None:
    """The process: asked on its input, answers on its output."""
    # What anything else would print is no part of the answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Asked)
        _bound(asked)
        out.write(msgspec.msgpack.encode(asyncio.run(_worked(asked))))


if __name__ == "__main__":
    main()
