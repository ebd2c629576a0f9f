"""`toolgate serve`: the server, on this machine's own loopback unless told otherwise."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Generator
from typing import Annotated

import typer
import uvicorn
import uvloop

from toolgate.bootstrap import Toolgate
from toolgate.cli import log
from toolgate.cli.greeting import OBSERVES, Greeting, greet
from toolgate.cli.listen import listen
from toolgate.cli.session import Config, Json, ending, load, warn_of_engines, warn_of_sources
from toolgate.server.alarm import Alarm
from toolgate.server.app import App
from toolgate.server.limits import MAX_CONCURRENT, LimitedProtocol
from toolgate.settings.settings import Settings
from toolgate.tenancy.first import first_keys

app = typer.Typer(add_completion=False, help="Start the server.")


@app.command()
def serve(
    config: Config = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Instead of the settings' port.")
    ] = None,
    json: Json = False,
) -> None:
    """Start the server."""
    handler = log.to_stderr()
    with ending(json=json):
        settings = load(config)
        log.follow(handler, settings.telemetry)
        chosen = settings.server.port if port is None else port
        listening = listen(settings.server.host, chosen)
        uvloop.run(_serve(settings, listening, json=json))


class _Server(uvicorn.Server):
    """Greets when it is ready; a signal lets the store close before the process ends."""

    greet: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Ready is when requests are taken."""
        await super().startup(sockets)
        if self.started:
            self.greet()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Ask the server to finish what it has begun."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._finish)
        yield

    def _finish(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


async def _serve(settings: Settings, listening: socket.socket, *, json: bool) -> None:
    asyncio.get_running_loop().set_exception_handler(log.unhandled)
    async with Toolgate.open(settings) as gate:
        warn_of_sources(gate)
        warn_of_engines(gate)
        observes = settings.policy.mode == "observe"
        if observes:
            log.log.warning("%s", OBSERVES)
        keys = await first_keys(gate.tenancy)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        bound = f"http://{shown}:{port}"
        greeting = Greeting(bound, settings.server.public_url, keys, observes)
        server = _Server(
            uvicorn.Config(
                App(gate, settings.server),
                loop="none",
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAX_CONCURRENT,
                timeout_graceful_shutdown=30,
            )
        )
        server.greet = lambda: greet(greeting, json=json)
        with Alarm():
            await server.serve(sockets=[listening])
