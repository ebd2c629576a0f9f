"""The only place that reads the time: wall clock for records, monotonic clock for durations."""

import time
from datetime import UTC, datetime

monotonic_ns = time.perf_counter_ns
unix_ns = time.time_ns


def utc_now() -> datetime:
    """Now, with its zone; microseconds."""
    return datetime.now(UTC)
