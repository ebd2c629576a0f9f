"""The only place that reads the time: wall clock for records, monotonic clock for durations."""

import time
from datetime import UTC, datetime, timedelta

monotonic_ns = time.perf_counter_ns
unix_ns = time.time_ns


_BEGAN = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    """Now, with its zone; microseconds."""
    return datetime.now(UTC)


def moment_of(unix_ns: int) -> datetime:
    """A moment of the wall clock, with its zone; microseconds."""
    return _BEGAN + timedelta(microseconds=unix_ns // 1_000)


def unix_of(moment: datetime) -> int:
    """The other way round."""
    return (moment - _BEGAN) // timedelta(microseconds=1) * 1_000
