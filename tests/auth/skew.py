"""A server whose wall clock a test can put forward: what ends in an hour ends at once."""

from pathlib import Path

HOUR_NS = 3_600_000_000_000
# Before anything of ours is loaded: who asks for the time asks the clock's own room.
SKEWED = """\
import pathlib, time
from toolgate import clock
_skew = pathlib.Path("skew")
clock.unix_ns = lambda: time.time_ns() + (int(_skew.read_text() or 0) if _skew.exists() else 0)
"""


def put_forward(root: Path, hours: float) -> None:
    """So far ahead of everybody else from now on."""
    new = root / "skew.new"
    new.write_text(str(round(hours * HOUR_NS)), "utf-8")
    new.replace(root / "skew")
