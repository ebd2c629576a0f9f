"""An alarm for a loop that does not come round: what blocks it holds up everybody."""

import logging
import sys
import threading
from asyncio import get_running_loop
from types import FrameType, TracebackType
from typing import Self

from toolgate import clock

log = logging.getLogger("toolgate.server")
_AFTER = 1.0


class Alarm:
    """Looks at the loop it is entered on, from a thread of its own, and says who holds it up."""

    def __init__(self, after: float = _AFTER) -> None:
        self._after = after
        self._over = threading.Event()

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

    def _watch(self) -> None:
        while not self._over.wait(self._after):
            came_round = threading.Event()
            began_ns = clock.monotonic_ns()
            try:
                self._loop.call_soon_threadsafe(came_round.set)
            except RuntimeError:
                # The loop is closed.
                return
            if came_round.wait(self._after):
                continue
            log.error(
                "%s holds up every call: it blocks the loop; write it as a plain def, which runs "
                "in a thread",
                self._holder(),
            )
            while not came_round.wait(self._after) and not self._over.is_set():
                pass
            log.warning("the loop goes on after %.1f s", (clock.monotonic_ns() - began_ns) / 1e9)

    def _holder(self) -> str:
        """Only names and a line: a path, or a value, is nobody's business."""
        # There is no other way to look into a thread.
        frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        frame: FrameType | None = frames.get(self._home)
        if frame is None:
            return "something"
        # What we called, not what that calls in turn.
        while frame.f_back is not None and not _module(frame.f_back).startswith("toolgate."):
            frame = frame.f_back
        return f"{_module(frame)}.{frame.f_code.co_name}, line {frame.f_lineno},"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "?"))
