"""What watches calls, as the settings name it: numbers, a tracer, and who tells them."""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import NamedTuple

import msgspec

from toolgate import clock
from toolgate.errors import SettingsInvalid
from toolgate.executor.extension import Extension
from toolgate.executor.resilience.breaking import Breaking
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.executor.trace.meter import Meter
from toolgate.executor.trace.trace import Spans, Trace
from toolgate.executor.trace.watch import Watch
from toolgate.queue.queue import Depth, Queue
from toolgate.settings.settings import Settings
from toolgate.store import standing
from toolgate.store.database import Database
from toolgate.store.decisions import TableDecisions
from toolgate.store.journal import TableJournal
from toolgate.store.seals import Sealer
from toolgate.telemetry.gauges import Gauge, Look, one, read_all
from toolgate.telemetry.prometheus import render

_API = "opentelemetry.trace"


class Watched(NamedTuple):
    """The rooms whose standing is told."""

    database: Database
    journal: TableJournal
    decisions: TableDecisions
    chain: Iterable[Extension]
    queue: Queue


def begin(settings: Settings, database: Database, stack: AsyncExitStack) -> Watch:
    """A meter, and a tracer where one is asked for, here or by the program that we run in.

    Called before all that writes, and so closed after it: what it writes last is sealed too.
    """
    sealer = Sealer(database)
    sealer.start()
    stack.push_async_callback(sealer.close)
    meter = Meter()
    return Watch(meter, _spans(settings.telemetry.traces, meter, stack))


def told(watch: Watch, settings: Settings, watched: Watched) -> Watch:
    """With the numbers as text, where they may be asked for."""
    if not settings.telemetry.metrics:
        return watch
    gauges = (*_of_store(watched), *_of_queue(watched.queue), *_of_chain(watched.chain))

    async def metrics() -> bytes:
        return render(watch.meter, await read_all(gauges))

    return msgspec.structs.replace(watch, metrics=metrics)


def _of_store(watched: Watched) -> list[Gauge]:
    database, journal, decisions = watched.database, watched.journal, watched.decisions
    helps = {
        "approvals_waiting": "Calls that wait for a person.",
        "outbox_depth": "Events that are still to be sent.",
        "unknown_calls": "Side effects whose end nobody knows; an operator settles them.",
        "audit_unsealed": "Audit records that the next seal will take in.",
    }
    return [
        *(
            Gauge(f"toolgate_{name}", told, standing.number(database, name))
            for name, told in helps.items()
        ),
        Gauge(
            "toolgate_journal_backlog",
            "Calls that are still to be written.",
            one(lambda: journal.waiting),
        ),
        Gauge(
            "toolgate_decisions_dropped_total",
            "Decisions that are not on record because too many waited.",
            one(lambda: decisions.dropped),
            kind="counter",
        ),
    ]


def _of_queue(queue: Queue) -> list[Gauge]:
    """The whole queue, whichever node is asked."""
    look = Look(queue.depth)
    return [
        Gauge(
            "toolgate_queue_calls",
            "Queued calls that wait, are with the broker, with a worker, or dead.",
            look.told(_stages),
            ("state",),
        ),
        Gauge(
            "toolgate_queue_unheld_calls",
            "Queued calls that are not over, and that no worker holds.",
            look.told(lambda depth: {(): depth.unheld}),
        ),
        Gauge(
            "toolgate_queue_oldest_seconds",
            "Since when the oldest queued call that is not over is queued.",
            look.told(lambda depth: {(): _age(depth.oldest_ns)}),
        ),
        Gauge(
            "toolgate_queue_unheld_seconds",
            "The same of those that no worker holds.",
            look.told(lambda depth: {(): _age(depth.unheld_ns)}),
        ),
    ]


def _stages(depth: Depth) -> Mapping[tuple[str, ...], float]:
    return {
        ("waiting",): depth.waiting,
        ("sent",): depth.sent,
        ("taken",): depth.taken,
        ("dead",): depth.dead,
    }


def _age(since_ns: int) -> float:
    return max(clock.unix_ns() - since_ns, 0) / 1e9 if since_ns else 0.0


def _of_chain(chain: Iterable[Extension]) -> list[Gauge]:
    found: list[Gauge] = []
    for link in chain:
        match link:
            case Trace():
                found.append(
                    Gauge(
                        "toolgate_refusals_dropped_total",
                        "Refusals that are not on record because the store did not take them.",
                        _dropped(link),
                        kind="counter",
                    )
                )
            case Breaking():
                found.append(
                    Gauge(
                        "toolgate_breaker_open",
                        "Breakers that are not closed: 1 is open, 0.5 lets a few calls pass.",
                        link.troubled,
                        ("tenant_id", "tool_name"),
                    )
                )
            case Bulkhead():
                found.append(
                    Gauge(
                        "toolgate_bulkhead_calls",
                        "Calls that run, and that wait for their turn.",
                        link.standing,
                        ("gateway", "state"),
                    )
                )
            case _:
                pass
    return found


def _dropped(link: Trace) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): float(link.dropped)}


def _spans(address: str, meter: Meter, stack: AsyncExitStack) -> Spans | None:
    # A program that has not even loaded it has no tracer.
    if not address and _API not in sys.modules:
        return None
    try:
        from toolgate.telemetry.tracing import embedding  # noqa: PLC0415  an extra, and heavy

        if not address:
            return embedding()
        from toolgate.telemetry.otlp import Otlp  # noqa: PLC0415
    except ImportError:
        if not address:
            return None
        raise SettingsInvalid(
            ["telemetry.traces: OpenTelemetry is an extra: make install EXTRAS=otel"]
        ) from None
    otlp = Otlp(address, meter)
    stack.push_async_callback(otlp.close)
    return otlp.spans
