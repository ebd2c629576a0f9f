"""Folders in memory, where a store's commit waits for no disk.

Nothing that a test asks is lost by it: what a killed process wrote is there either way, and only a
power cut would tell the two apart.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PLACE = Path("/dev/shm")  # noqa: S108  the machine's memory, as a folder
_ENOUGH = 1 << 30
# Where stores are written to most. Programs in a sandbox are given no folder below /dev, so that
# tests that start them stay on the disk.
AREAS = frozenset(
    {
        *("audit", "cli", "executor", "gate", "ledger", "limits", "once", "outputs", "people"),
        *("resilience", "server", "store", "tenancy", "undo"),
    }
)


def has_room() -> bool:
    """Whether there is such a place, with room, from which a program may be run."""
    try:
        found = os.statvfs(_PLACE)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > _ENOUGH and not found.f_flag & os.ST_NOEXEC


@contextmanager
def folder() -> Generator[Path]:
    """One that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="toolgate-", dir=_PLACE))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
