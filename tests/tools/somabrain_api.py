"""A service that remembers as SomaBrain does, on loopback: by tenant, universe and coordinate."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

KEY = "a-key-of-the-tests"


class SomaBrainApi:
    """`keeps_apart`: whether it looks at the universe of a question. Real ones do."""

    def __init__(self) -> None:
        self.url = ""
        self.kept: dict[tuple[str, tuple[float, ...]], dict[str, Any]] = {}
        self.keeps_apart = True
        self.status = 200

    async def remember(self, request: web.Request) -> web.Response:
        body = await request.json()
        at = tuple(float(part) for part in body["coord"].split(","))
        self.kept[_tenant(request), at] = body["payload"]
        return self._told({"ok": True, "success": True})

    async def recall(self, request: web.Request) -> web.Response:
        body = await request.json()
        found = [
            payload
            for (tenant, _), payload in self.kept.items()
            if tenant == _tenant(request)
            and (not self.keeps_apart or payload["universe"] == body["universe"])
        ]
        hits = [{"score": _score(body["query"], one["content"]), "payload": one} for one in found]
        # What is in its working memory is in the long one too, without a score.
        return self._told({"wm": hits[: body["top_k"]], "memory": found})

    async def delete(self, request: web.Request) -> web.Response:
        at = tuple((await request.json())["coordinate"])
        self.kept.pop((_tenant(request), at), None)
        return self._told({"ok": True})

    def _told(self, what: dict[str, Any]) -> web.Response:
        told = {**what, "namespace": "tests", "trace_id": "t"}
        return web.json_response(told, status=self.status)


def _tenant(request: web.Request) -> str:
    if request.headers.get("Authorization") != f"Bearer {KEY}":
        raise web.HTTPUnauthorized
    return request.headers["X-Tenant-ID"]


def _score(query: str, content: str) -> float:
    asked, said = set(query.lower().split()), set(content.lower().split())
    return len(asked & said) / len(asked)


@asynccontextmanager
async def serving() -> AsyncGenerator[SomaBrainApi]:
    """As long as it is needed."""
    api = SomaBrainApi()
    app = web.Application()
    app.router.add_post("/remember", api.remember)
    app.router.add_post("/recall", api.recall)
    app.router.add_post("/delete", api.delete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()
