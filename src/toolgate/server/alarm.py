"""An alarm for a loop that does not come round: what blocks it holds up everybody."""

import logging
import sys
import threading
from asyncio import get_running_loop
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from toolgate import clock
from toolgate.call import Call
from toolgate.executor.trace.meter import Meter

log = logging.getLogger("toolgate.server")
_AFTER = 1.0


class Holder(NamedTuple):
    """What holds up the loop: the tool whose call it is, empty where it is none's, and its code."""

    tool: str
    code: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.code}" if self.tool else self.code


class Alarm:
    """Looks at the loop it is entered on, from a thread of its own, and says who holds it up.

    What it finds it tells the log and the meter, and whoever asks from another thread.
    """

    def __init__(self, meter: Meter, after: float = _AFTER) -> None:
        self._meter = meter
        self._after = after
        self._over = threading.Event()
        # When it was asked to come round, while it has not.
        self._asked_ns: int | None = None

    def __enter__(self) -> Self:
        self._loop = get_running_loop()
        self._home = threading.get_ident()
        threading.Thread(target=self._watch, name="toolgate-alarm", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()

    @property
    def blocked_s(self) -> float:
        """For how long the loop has not come round; 0 where that is no reason to worry."""
        asked_ns = self._asked_ns
        seconds = 0.0 if asked_ns is None else (clock.monotonic_ns() - asked_ns) / 1e9
        return seconds if seconds >= self._after else 0.0

    def _watch(self) -> None:
        while not self._over.wait(self._after):
            came_round = threading.Event()
            self._asked_ns = began_ns = clock.monotonic_ns()
            try:
                self._loop.call_soon_threadsafe(came_round.set)
                if not came_round.wait(self._after):
                    self._tell(came_round)
                    log.warning(
                        "the loop goes on after %.1f s", (clock.monotonic_ns() - began_ns) / 1e9
                    )
            except RuntimeError:
                # The loop is closed.
                return
            finally:
                self._asked_ns = None

    def _tell(self, came_round: threading.Event) -> None:
        """Who it is, once; then wait until the loop goes on."""
        holder = self._holder()
        log.error(
            "%s holds up every call: it blocks the loop; write it as a plain def, which runs "
            "in a thread",
            holder,
        )
        # Counted on the loop, as everything is: when it goes on.
        self._loop.call_soon_threadsafe(self._meter.block, holder.tool)
        while not came_round.wait(self._after) and not self._over.is_set():
            pass

    def _holder(self) -> Holder:
        """Only names and a line: a path, or a value, is nobody's business."""
        # There is no other way to look into a thread.
        frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        frame: FrameType | None = frames.get(self._home)
        if frame is None:
            return Holder("", "something")
        # What we called, not what that calls in turn.
        while frame.f_back is not None and not _module(frame.f_back).startswith("toolgate."):
            frame = frame.f_back
        code = f"{_module(frame)}.{frame.f_code.co_name}, line {frame.f_lineno},"
        return Holder(_tool(frame), code)


def _tool(frame: FrameType | None) -> str:
    """The call whose link of the chain stands nearest around it."""
    while frame is not None:
        call = frame.f_locals.get("call") if _module(frame).startswith("toolgate.") else None
        if isinstance(call, Call):
            return call.grant.spec.name
        frame = frame.f_back
    return ""


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "?"))
