"""OpenTelemetry spans. Loaded only where somebody traces: its packages are an extra."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolgate.errors import ToolgateError

VERSION = version("toolgate")
_PREFIX = "toolgate."
_LONGEST = 200
_PROPAGATOR = TraceContextTextMapPropagator()
# One that does not look like one begins a trace of its own.
_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\Z")


def embedding() -> "OtelSpans | None":
    """The tracer of the program that we run in, where it has set one up."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    return OtelSpans(provider.get_tracer("toolgate", VERSION))


class _Told:
    """The span port over one of theirs."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def tell(self, **attributes: str | bool) -> None:
        """Add to what is known about it."""
        for name, value in attributes.items():
            self._span.set_attribute(_PREFIX + name, _bounded(value))


class OtelSpans:
    """The tracer port."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str]) -> Generator[_Told]:
        """An error is told by its code, or its kind: its words can hold anything."""
        told = {_PREFIX + key: _bounded(value) for key, value in attributes.items()}
        with self._tracer.start_as_current_span(
            name, attributes=told, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _Told(span)
            except BaseException as error:
                code = error.code if isinstance(error, ToolgateError) else type(error).__name__
                span.set_attribute("error.type", code[:_LONGEST])
                span.set_status(Status(StatusCode.ERROR))
                raise

    @contextmanager
    def continued(self, headers: Mapping[str, str]) -> Generator[None]:
        """What begins in the block belongs to the trace of a `traceparent`, where there is one."""
        if not _PARENT.match(headers.get("traceparent", "")):
            yield
            return
        token = context.attach(_PROPAGATOR.extract(headers))
        try:
            yield
        finally:
            context.detach(token)

    def carried(self) -> dict[str, str]:
        """`traceparent`, and what came with it."""
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers)
        return headers


def _bounded(value: str | bool) -> str | bool:  # noqa: FBT001  an attribute's value
    if isinstance(value, bool):
        return value
    return value[:_LONGEST].encode("utf-8", "backslashreplace").decode()
