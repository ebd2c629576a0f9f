"""A real server on loopback that takes events, or does not."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import orjson
from aiohttp import web

SECRET = "a secret that signs events"  # noqa: S105  of this test


class Got(NamedTuple):
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return orjson.loads(self.raw)

    @property
    def id(self) -> str:
        return self.headers["X-Toolgate-Event-Id"]


class Receiver:
    """`status` says what it answers to an event; `got` is all that came, taken or not."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.status: Callable[[Got], int] = lambda _got: 200
        self.url = ""

    @property
    def kinds(self) -> list[str]:
        return [got.body["kind"] for got in self.got]

    async def take(self, request: web.Request) -> web.Response:
        got = Got(dict(request.headers), await request.read())
        self.got.append(got)
        return web.Response(status=self.status(got))


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/events", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/events"
    try:
        yield receiver
    finally:
        await runner.cleanup()
