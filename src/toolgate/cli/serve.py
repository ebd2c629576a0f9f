"""`toolgate serve`: the server, on this machine's own loopback unless told otherwise."""

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Callable, Generator
from typing import Annotated

import typer
import uvicorn
import uvloop

from toolgate.bootstrap import Toolgate
from toolgate.cli import log
from toolgate.cli.birth import Birth
from toolgate.cli.greeting import OBSERVES, Greeting, greet
from toolgate.cli.health import Beside, Health, Place, place
from toolgate.cli.listen import listen, locked
from toolgate.cli.reloading import Reloading
from toolgate.cli.session import Config, Json, ending, load, usage, warn_of_engines, warn_of_sources
from toolgate.server.alarm import Alarm
from toolgate.server.doors import doors
from toolgate.server.ending import ENDING
from toolgate.server.limits import MAX_CONCURRENT, LimitedProtocol
from toolgate.settings.settings import Settings
from toolgate.tenancy.first import first_keys

app = typer.Typer(add_completion=False, help="Start the server.")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MOMENT = 0.1


@app.command()
def serve(
    config: Config = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Instead of the settings' port.")
    ] = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", metavar="", help="Start anew when its files change: to develop."),
    ] = False,
    health: Beside = "",
    json: Json = False,
    inherit: Annotated[int | None, typer.Option("--inherit", hidden=True)] = None,
    ready: Annotated[int | None, typer.Option("--ready", hidden=True)] = None,
    again: Annotated[bool, typer.Option("--again", hidden=True)] = False,
) -> None:
    """Start the server."""
    handler = log.to_stderr()
    with ending(json=json):
        if health and reload:
            raise usage("--health is for a server that stays; leave out --reload.", json=json)
        where = place(health, json=json) if health else None
        settings = load(config)
        log.follow(handler, settings.telemetry)
        chosen = settings.server.port if port is None else port
        if inherit is None:
            listening = listen(settings.server.host, chosen)
        else:
            listening = socket.socket(fileno=inherit)
            # Given to this process, and to none that it starts: whoever has it can take requests.
            listening.set_inheritable(False)
        if reload:
            raise typer.Exit(Reloading(config, listening, json=json).run())
        birth = Birth(ready, is_again=again)
        uvloop.run(_serve(settings, listening, birth, where, json=json))


class _Server(uvicorn.Server):
    """Greets when it is ready; a signal lets what has begun come to its end, a second one does not.

    A third one is left to the system.
    """

    greet: Callable[[], None]
    drain: float

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Ready is when requests are taken."""
        await super().startup(sockets)
        if self.started:
            # What is loaded by now stays: to look through all of it again holds up every call, and
            # to do so now would hold up the first.
            gc.freeze()
            self.greet()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Ask the server to finish what it has begun."""
        loop = asyncio.get_running_loop()
        for one in _SIGNALS:
            loop.add_signal_handler(one, self.finish)
        yield

    def finish(self) -> None:
        """What has begun comes to its end; asked once more, nothing is waited for."""
        loop = asyncio.get_running_loop()
        if not self.should_exit:
            self.should_exit = True
            ENDING.begin()
            loop.call_later(self.drain, self._hurry)
            return
        self._hurry()
        for one in _SIGNALS:
            loop.remove_signal_handler(one)
            signal.signal(one, signal.SIG_DFL)

    def _hurry(self) -> None:
        """Whoever takes no answer holds up nobody; what waited only for them is over in a moment.

        Cancelled instead, it would wait for them again: uvicorn tells them of that, too.
        """
        for one in tuple(self.server_state.connections):
            if isinstance(one, LimitedProtocol):
                one.hurry()
        asyncio.get_running_loop().call_later(_MOMENT, self._force)

    def _force(self) -> None:
        self.force_exit = True


async def _serve(
    settings: Settings, listening: socket.socket, birth: Birth, where: Place | None, *, json: bool
) -> None:
    asyncio.get_running_loop().set_exception_handler(log.unhandled)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    bound = f"http://{shown}:{port}"
    async with Toolgate.open(settings) as gate, doors(gate, settings, bound) as app:
        birth.check(gate, settings.root)
        warn_of_sources(gate)
        warn_of_engines(gate)
        observes = settings.policy.mode == "observe"
        if observes:
            log.log.warning("%s", OBSERVES)
        locked(gate.tenancy, settings)
        keys = await first_keys(gate.tenancy)
        greeting = Greeting(bound, settings.server.public_url, keys, observes)
        server = _Server(
            uvicorn.Config(
                app,
                loop="none",
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                # Nobody asks from where a request comes: who sends it is known by its key.
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MAX_CONCURRENT,
            )
        )
        server.drain = settings.server.drain
        birth.follow(server.finish)
        with (
            Alarm(gate.watch.meter) as alarm,
            _beside(gate, where, alarm) as beside,
            ENDING.told(gate.rest),
        ):
            if beside is not None:
                greeting = greeting._replace(health=beside.address)
            server.greet = birth.greeting(lambda: greet(greeting, json=json))
            await server.serve(sockets=[listening])
        if server.server_state.tasks:
            count = len(server.server_state.tasks)
            log.log.warning("%d requests were not over; how their calls ended is on record", count)
            # Their callers are told, too: nobody knows how far they got.
            await gate.finish(0)
            raise typer.Exit(1)
    if gate.queue.left():
        raise typer.Exit(1)


def _beside(
    gate: Toolgate, where: Place | None, alarm: Alarm
) -> contextlib.AbstractContextManager[Health | None]:
    return contextlib.nullcontext() if where is None else Health(gate, where, alarm)
