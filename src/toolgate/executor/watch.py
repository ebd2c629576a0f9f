"""Who watches calls: what counts them, what traces them, and what tells the numbers."""

from collections.abc import Awaitable, Callable

import msgspec

from toolgate.executor.meter import Meter
from toolgate.executor.trace import Spans


class Watch(msgspec.Struct, frozen=True):
    """Without a tracer nothing of it is in the chain; counting is always on."""

    meter: Meter = msgspec.field(default_factory=Meter)
    spans: Spans | None = None
    # The numbers as text, where they may be asked for.
    metrics: Callable[[], Awaitable[bytes]] | None = None
