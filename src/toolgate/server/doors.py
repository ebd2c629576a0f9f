"""All doors of one server, behind one address: REST, and MCP at `/mcp`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.runtime import Runtime
from toolgate.server import app
from toolgate.server.app import App
from toolgate.server.ending import ENDING
from toolgate.server.mcp.http import PATH, Mcp
from toolgate.server.metadata import pages
from toolgate.server.tokens import Tokens, accepted
from toolgate.settings.settings import Settings


@asynccontextmanager
async def doors(gate: Runtime, settings: Settings, bound: str = "") -> AsyncGenerator[App]:
    """The application that a server runs; `bound` is the address that it listens on."""
    base = settings.server.public_url or bound
    accepting = accepted(settings.auth, base, settings.net.allow)
    async with accepting as tokens, _behind(gate, settings, tokens) as served:
        yield served


@asynccontextmanager
async def _behind(gate: Runtime, settings: Settings, tokens: Tokens | None) -> AsyncGenerator[App]:
    more: dict[str, app.Handler] = {} if tokens is None else {**pages(tokens)}
    served = App(gate, settings.server, more, tokens)
    mcp = Mcp(
        gate,
        served.door,
        expose_tools=settings.mcp.expose_tools,
        task_after=settings.mcp.task_after,
        drain=settings.server.drain,
    )
    more[PATH] = mcp
    try:
        # Streams would hold the end up for as long as their clients like.
        with ENDING.told(mcp.end_streams):
            yield served
    finally:
        await mcp.close()
