"""Sends traces and the numbers to an OTLP address, from threads of its own."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from toolgate.executor.trace.meter import Calls, Meter
from toolgate.telemetry.tracing import VERSION, OtelSpans

# A receiver that hangs must not keep the house from closing.
_SECONDS = 5.0
_NUMBERS_EVERY_MS = 30_000.0
_CALLS = ("tenant_id", "agent_id", "tool_name")
_Observed = Iterable[Observation]


class Otlp:
    """A tracer that sends, and the numbers beside it. Nothing of it is the whole process's."""

    def __init__(self, address: str, meter: Meter) -> None:
        resource = Resource.create({"service.name": "toolgate", "service.version": VERSION})
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{address}/v1/traces", timeout=_SECONDS)
        self._traces.add_span_processor(BatchSpanProcessor(exporter))
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{address}/v1/metrics", timeout=_SECONDS),
            export_interval_millis=_NUMBERS_EVERY_MS,
            export_timeout_millis=_SECONDS * 1_000,
        )
        self._numbers = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        _observe(self._numbers, meter)
        self.spans = OtelSpans(self._traces.get_tracer("toolgate", VERSION))

    async def close(self) -> None:
        """Send what waits; not on the loop's thread, which others need."""
        await asyncio.to_thread(self._shutdown)

    def _shutdown(self) -> None:
        self._traces.shutdown()
        self._numbers.shutdown(timeout_millis=_SECONDS * 1_000)


def _observe(provider: MeterProvider, meter: Meter) -> None:
    """Read when they are sent: a call does not count twice. A copy, since the loop goes on."""
    numbers = provider.get_meter("toolgate", VERSION)

    def counter(name: str, read: Callable[[], _Observed], unit: str = "1") -> None:
        def callback(_: CallbackOptions) -> _Observed:
            return list(read())

        numbers.create_observable_counter(name, callbacks=[callback], unit=unit)

    def each(labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> _Observed:
        return [Observation(count, _named(labels, key)) for key, count in list(counts.items())]

    def calls() -> list[tuple[tuple[str, ...], Calls]]:
        return list(meter.calls.items())

    counter(
        "tool_execution_total",
        lambda: [
            Observation(count, _named((*_CALLS, "status"), (*key, status)))
            for key, one in calls()
            for status, count in one.statuses.items()
            if count
        ],
    )
    counter(
        "tool_execution_duration_seconds_sum",
        lambda: [
            Observation(one.sum_ns / 1e9, _named((*_CALLS, "gateway"), (*key, one.gateway)))
            for key, one in calls()
        ],
        "s",
    )
    counter(
        "tool_execution_duration_seconds_count",
        lambda: [
            Observation(sum(one.buckets), _named((*_CALLS, "gateway"), (*key, one.gateway)))
            for key, one in calls()
        ],
    )
    hits, denied = ("tenant_id", "tool_name"), ("tool_name", "user_id")
    policy = ("tenant_id", "agent_id", "policy")
    counter("tool_idempotency_cache_hits_total", lambda: each(hits, meter.hits))
    counter("tool_side_effect_total", lambda: each(policy, meter.effects))
    counter("tool_retries_total", lambda: each(("tool_name",), meter.retries))
    counter("tool_permission_denied", lambda: each(denied, meter.denied))
    counter("toolgate_refusals_total", lambda: each(("code",), meter.refused))
    counter("toolgate_auth_refused_total", lambda: each(("reason",), meter.knocks))
    counter("toolgate_queue_ended_total", lambda: each(("status",), meter.ended))
    counter("toolgate_loop_blocked_total", lambda: each(("tool_name",), meter.blocked))


def _named(labels: tuple[str, ...], values: tuple[str, ...]) -> dict[str, str]:
    told = (value.encode("utf-8", "backslashreplace").decode() for value in values)
    return dict(zip(labels, told, strict=True))
