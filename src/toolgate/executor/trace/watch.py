"""Who watches calls: what counts them, what traces them, and what tells the numbers."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext

import msgspec

from toolgate.caller import Caller
from toolgate.errors import CallRefused, PermissionDenied, ToolNotFound
from toolgate.executor.trace.meter import Meter
from toolgate.executor.trace.trace import Spans


class Watch(msgspec.Struct, frozen=True):
    """Without a tracer nothing of it is in the chain; counting is always on."""

    meter: Meter = msgspec.field(default_factory=Meter)
    spans: Spans | None = None
    # The numbers as text, where they may be asked for.
    metrics: Callable[[], Awaitable[bytes]] | None = None

    @contextmanager
    def deciding(
        self, caller: Caller, tool: str, *, is_there: Callable[[str], bool]
    ) -> Generator[None]:
        """Around a decision that is not known yet: a stretch of its own, and its no is counted.

        A name that no source has is nobody's tool, and no label.
        """
        told = {"tool": tool, "tenant": caller.tenant, "agent": caller.agent}
        spans = self.spans
        with nullcontext() if spans is None else spans.span("toolgate.gate", told):
            try:
                yield
            except CallRefused as error:
                is_denied = isinstance(error, PermissionDenied) or (
                    isinstance(error, ToolNotFound) and is_there(tool)
                )
                if is_denied:
                    self.meter.deny(tool, caller.user, error.code)
                else:
                    self.meter.refuse(error.code)
                raise
