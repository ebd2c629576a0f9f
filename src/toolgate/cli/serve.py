"""`toolgate serve`: the server, on this machine's own loopback unless told otherwise."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Generator
from typing import Annotated

import typer
import uvicorn
import uvloop

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.session import Config, Json, ending, load
from toolgate.errors import ToolgateError
from toolgate.server.app import App
from toolgate.settings import Settings
from toolgate.tenancy.first import FirstKeys, first_keys

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
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    with ending(json=json):
        settings = load(config)
        chosen = settings.server.port if port is None else port
        listening = _listen(settings, chosen)
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


def _listen(settings: Settings, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.server.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.server.host, port))
        # Taken from now on: two that start at once cannot both have it.
        listening.listen()
    except OSError as error:
        listening.close()
        raise ToolgateError(
            f"Cannot listen on {settings.server.host}:{port} ({error.strerror}). "
            "Stop what uses it, or choose another: toolgate serve --port 0"
        ) from None
    listening.set_inheritable(True)
    return listening


async def _serve(settings: Settings, listening: socket.socket, *, json: bool) -> None:
    async with Toolgate.open(settings) as gate:
        keys = await first_keys(gate.tenancy)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        address = settings.server.public_url or f"http://{shown}:{port}"
        server = _Server(
            uvicorn.Config(
                App(gate, settings.server),
                loop="none",
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=30,
            )
        )
        server.greet = lambda: _greet(address, keys, json=json)
        await server.serve(sockets=[listening])


def _greet(address: str, keys: FirstKeys | None, *, json: bool) -> None:
    if json:
        shown = {"admin": keys.admin, "agent": keys.agent} if keys else None
        show.as_json({"url": address, "keys": shown})
    else:
        _explain_how_to_connect(address, keys)
    sys.stdout.flush()


def _explain_how_to_connect(address: str, keys: FirstKeys | None) -> None:
    show.line(f"toolgate listens on {address}")
    key = "YOUR_KEY"
    if keys:
        key = keys.agent
        show.line("")
        show.line("Two keys were made. They are shown this once; keep them.")
        show.line(f"  admin   {keys.admin}")
        show.line(f"  agent   {keys.agent}   (tenant demo, agent assistant)")
    show.line("")
    show.line("List what the agent may call:")
    show.line(f"  curl -H 'Authorization: Bearer {key}' {address}/v1/tools")
    show.line("Call a tool:")
    body = '{"tool": "echo", "args": {"text": "hello"}}'
    show.line(f"  curl -H 'Authorization: Bearer {key}' {address}/v1/call -d '{body}'")
    show.line("From Python:")
    show.line("  import json, urllib.request")
    show.line(f"  call = urllib.request.Request('{address}/v1/call', json.dumps({body}).encode(),")
    show.line(f"                                {{'Authorization': 'Bearer {key}'}})")
    show.line("  print(urllib.request.urlopen(call).read().decode())")
    show.line("")
    show.line("Stop with Ctrl-C.")
