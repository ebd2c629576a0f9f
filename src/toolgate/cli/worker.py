"""`toolgate worker`: runs queued calls, and nothing else. It has no doors."""

import asyncio
import contextlib
import gc
import signal

import typer
import uvloop

from toolgate.bootstrap import Toolgate
from toolgate.cli import log, show
from toolgate.cli.health import Beside, Health, place
from toolgate.cli.session import Config, Json, ending, load, warn_of_engines, warn_of_sources
from toolgate.server.alarm import Alarm
from toolgate.settings.settings import Settings

app = typer.Typer(add_completion=False, help="Run queued calls, without doors.")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@app.command()
def worker(
    config: Config = None,
    health: Beside = "",
    json: Json = False,
) -> None:
    """Run queued calls, without doors.

    Until it is told to end; what has begun comes to its end.
    """
    handler = log.to_stderr()
    with ending(json=json):
        settings = load(config)
        log.follow(handler, settings.telemetry)
        uvloop.run(_work(_working(settings), health, json=json))


def _working(settings: Settings) -> Settings:
    """Whatever `toolgate serve` does with these."""
    queue = settings.queue.model_copy(update={"work": "always"})
    return settings.model_copy(update={"queue": queue})


async def _work(settings: Settings, health: str, *, json: bool) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log.unhandled)
    told = asyncio.Event()
    where = place(health, json=json) if health else None
    async with contextlib.AsyncExitStack() as stack:
        # What a scheduler of a node asks for, it asks for once.
        gate = await stack.enter_async_context(Toolgate.open(settings, scheduled=False))
        alarm = stack.enter_context(Alarm(gate.watch.meter))
        if where is not None:
            stack.enter_context(Health(gate, where, alarm))
        warn_of_sources(gate)
        warn_of_engines(gate)
        for one in _SIGNALS:
            loop.add_signal_handler(one, _end, told, loop)
        gc.freeze()
        _greet(settings, json=json)
        await told.wait()
        gate.rest()
    if gate.queue.left():
        raise typer.Exit(1)


def _end(told: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """A second signal is left to the system."""
    told.set()
    for one in _SIGNALS:
        loop.remove_signal_handler(one)


def _greet(settings: Settings, *, json: bool) -> None:
    queue = settings.queue
    source = f"the topic {queue.topics.requests}" if queue.url else "the store"
    if json:
        show.as_json({"ready": True, "source": source, "concurrency": queue.concurrency})
    else:
        show.line(f"toolgate worker takes calls from {source}, {queue.concurrency} at a time")
