"""The numbers as Prometheus reads them, written when it asks."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from toolgate.executor.trace.meter import BUCKETS, Calls, Meter
from toolgate.telemetry.gauges import Reading

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_LONGEST = 200
_CALLS = ("tenant_id", "agent_id", "tool_name")
_BOUNDS = tuple(f"{seconds:g}" for seconds in BUCKETS)


def render(meter: Meter, readings: Iterable[Reading] = ()) -> bytes:
    """The text exposition format: one line a number, names in quotes."""
    lines = [*_of_calls(meter), *_counted(meter)]
    for gauge, values in readings:
        lines += _family(gauge.name, gauge.help, gauge.kind)
        lines += [
            f"{gauge.name}{_labels(gauge.labels, labels)} {_number(value)}"
            for labels, value in values.items()
        ]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _of_calls(meter: Meter) -> Iterator[str]:
    name = "tool_execution_total"
    yield from _family(name, "Calls of tools, by how they ended.", "counter")
    for key, calls in meter.calls.items():
        for status, count in calls.statuses.items():
            if count:
                yield f"{name}{_labels((*_CALLS, 'status'), (*key, status))} {count}"
    name = "tool_execution_duration_seconds"
    yield from _family(name, "How long calls took that ran, or may have.", "histogram")
    for key, calls in meter.calls.items():
        yield from _histogram(name, (*_CALLS, "gateway"), (*key, calls.gateway), calls)
    # The same observations by tool alone, under the name that dashboards of one tenant use.
    name = "tool_execution_duration"
    yield from _family(name, "How long calls took, by tool, in seconds.", "histogram")
    for tool, calls in _by_tool(meter).items():
        yield from _histogram(name, ("tool_name",), (tool,), calls)


def _counted(meter: Meter) -> Iterator[str]:
    families: tuple[tuple[str, str, str, tuple[str, ...], Mapping[tuple[str, ...], int]], ...] = (
        (
            "tool_idempotency_cache_hits_total",
            "Calls that were answered from the record.",
            "counter",
            ("tenant_id", "tool_name"),
            meter.hits,
        ),
        (
            "tool_side_effect_total",
            "Calls that changed something, or may have.",
            "counter",
            ("tenant_id", "agent_id", "policy"),
            meter.effects,
        ),
        (
            "tool_retries_total",
            "Further attempts at calls that did not end well.",
            "counter",
            ("tool_name",),
            meter.retries,
        ),
        (
            "tool_permission_denied",
            "Calls that the gate refused.",
            "counter",
            ("tool_name", "user_id"),
            meter.denied,
        ),
        (
            "tool_discovery_count",
            "How many tools an agent was shown the last time.",
            "gauge",
            ("agent_id",),
            meter.discovered,
        ),
        (
            "toolgate_refusals_total",
            "Calls that were refused, by the code that their callers were told.",
            "counter",
            ("code",),
            meter.refused,
        ),
        (
            "toolgate_auth_refused_total",
            "Requests whose key or token was not let in, by the reason.",
            "counter",
            ("reason",),
            meter.knocks,
        ),
        (
            "toolgate_queue_ended_total",
            "Queued calls that a worker of this process has ended, by how.",
            "counter",
            ("status",),
            meter.ended,
        ),
        (
            "toolgate_loop_blocked_total",
            "How often the loop did not come round for a second, by the tool in its way.",
            "counter",
            ("tool_name",),
            meter.blocked,
        ),
    )
    for name, help_, kind, labels, counts in families:
        yield from _family(name, help_, kind)
        for key, count in counts.items():
            yield f"{name}{_labels(labels, key)} {count}"


def _by_tool(meter: Meter) -> dict[str, Calls]:
    found: dict[str, Calls] = {}
    for (_tenant, _agent, tool), calls in meter.calls.items():
        summed = found.setdefault(tool, Calls(calls.gateway))
        summed.buckets = [a + b for a, b in zip(summed.buckets, calls.buckets, strict=True)]
        summed.sum_ns += calls.sum_ns
    return found


def _histogram(
    name: str, labels: tuple[str, ...], key: tuple[str, ...], calls: Calls
) -> Iterator[str]:
    if not any(calls.buckets):
        return
    inner = _labels(labels, key)[1:-1]
    *counts, total = accumulate(calls.buckets)
    for bound, count in zip(_BOUNDS, counts, strict=True):
        yield f'{name}_bucket{{{inner},le="{bound}"}} {count}'
    yield f'{name}_bucket{{{inner},le="+Inf"}} {total}'
    yield f"{name}_sum{{{inner}}} {calls.sum_ns / 1e9:.9f}"
    yield f"{name}_count{{{inner}}} {total}"


def _family(name: str, help_: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help_}", f"# TYPE {name} {kind}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    """No value ends its line or its quotes, and none is without an end."""
    if value.isascii() and value.isprintable() and len(value) <= _LONGEST:
        return value.translate(_ESCAPES)
    # Other line ends are no line ends to Prometheus, but they are to whoever looks at it.
    shown = value[:_LONGEST].encode("unicode_escape").decode()
    return shown.translate(_ESCAPES)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
