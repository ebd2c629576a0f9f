"""The world's servers, on loopback: pages, a search engine, a wiki, and some that mean no good."""

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

from aiohttp import web

from tests.tools import world_pages as pages

DUCK = [
    ("Green tea - Wikipedia", "https://en.wikipedia.org/wiki/Green_tea", "Brew at 80 degrees."),
    ("How to brew", "https://tea.example.com/brew?a=1&b=2", "Water that is too hot is bitter."),
    ("Green tea - Wikipedia", "https://en.wikipedia.org/wiki/Green_tea", "The same once more."),
]
ARTICLES: dict[str, dict[str, Any]] = {
    "Alan Turing": {
        "type": "standard",
        "description": "English computer scientist (1912\u20131954)",
        "extract": "Alan Turing was an English mathematician and computer scientist.",
    },
    "Mercury": {
        "type": "disambiguation",
        "description": "Topics referred to by the same term",
        "extract": "Mercury most commonly refers to:",
    },
    "Köln": {
        "type": "standard",
        "description": "Stadt in Nordrhein-Westfalen",
        "extract": "Köln ist eine Stadt am Rhein.",
    },
}
TEXTS = {
    "Köln": "Köln ist eine Stadt am Rhein.\n\n\n== Geschichte ==\nAlt.\n\n\n=== Römer ===\nJa.",
}


class World:
    """`got`: the last requests, newest last. `says`: what the search engine does next."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.says = ""

    async def page(self, request: web.Request) -> web.StreamResponse:
        self.got.append(request)
        self.bodies.append(await request.read())
        path = request.path
        if path in pages.HTML:
            return web.Response(text=pages.HTML[path], content_type="text/html")
        if path in pages.RAW:
            status, kind, body = pages.RAW[path]
            return web.Response(status=status, headers={"Content-Type": kind}, body=body)
        if path in pages.LEADING:
            raise web.HTTPFound(pages.LEADING[path])
        if path.startswith("/hops/"):
            left = int(path.removeprefix("/hops/"))
            raise web.HTTPFound(f"/hops/{left - 1}" if left else "/guide")
        if path == "/zipped":
            body = gzip.compress(b"a" * 10_000_000)
            told = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
            return web.Response(body=body, headers=told)
        if path == "/slow":
            return await _dripping(request)
        if path == "/temporary":
            raise web.HTTPTemporaryRedirect("/echo")
        if path == "/gone" and request.transport is not None:
            request.transport.abort()
        return web.Response(status=404, text="<h1>Not here</h1>", content_type="text/html")

    async def echo(self, request: web.Request) -> web.Response:
        self.got.append(request)
        self.bodies.append(await request.read())
        told = {
            "method": request.method,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": (await request.read()).decode(),
        }
        return web.json_response(told, status=201 if request.path == "/api/orders" else 200)

    async def duckduckgo(self, request: web.Request) -> web.Response:
        self.got.append(request)
        question = request.query["q"]
        if self.says == "doubt" or question == "are you a person":
            return web.Response(text=pages.DOUBT, content_type="text/html", status=202)
        hits = [] if question == "nothing at all" else DUCK
        light = request.path.startswith("/lite")
        text = pages.duck_light(hits) if light else pages.duck(hits)
        return web.Response(text=text, content_type="text/html")

    async def searxng(self, request: web.Request) -> web.Response:
        self.got.append(request)
        if request.query.get("format") != "json":
            raise web.HTTPForbidden
        hits = [{"title": one, "url": two, "content": three} for one, two, three in DUCK]
        told = {"query": request.query["q"], "number_of_results": 0, "results": hits, "answers": []}
        return web.json_response(told)

    async def brave(self, request: web.Request) -> web.Response:
        self.got.append(request)
        if request.headers.get("X-Subscription-Token") != "a-key-of-the-tests":
            raise web.HTTPUnauthorized
        hits = [
            {"title": a, "url": b, "description": f"<strong>{c[:4]}</strong>{c[4:]}"}
            for a, b, c in DUCK
        ]
        return web.json_response({"type": "search", "web": {"type": "search", "results": hits}})

    async def summary(self, request: web.Request) -> web.Response:
        self.got.append(request)
        language = request.match_info["language"]
        title = request.match_info["title"].replace("_", " ")
        if title == "Turing":
            raise web.HTTPFound(f"/{language}/api/rest_v1/page/summary/Alan_Turing")
        if title not in ARTICLES:
            return web.json_response({"type": "not_found", "title": "Not found."}, status=404)
        place = f"https://{language}.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"
        told = ARTICLES[title] | {"title": title, "lang": language, "pageid": 1}
        told["timestamp"] = "2026-01-02T03:04:05Z"
        told["content_urls"] = {"desktop": {"page": place}, "mobile": {"page": place}}
        return web.json_response(told)

    async def api(self, request: web.Request) -> web.Response:
        self.got.append(request)
        asked = request.query
        if asked.get("list") == "search":
            words = set(asked["srsearch"].lower().split())
            found = [one for one in ARTICLES if words & set(one.lower().split())]
            return web.json_response({"query": {"search": [{"ns": 0, "title": t} for t in found]}})
        title = asked["titles"]
        page = {"pageid": 1, "ns": 0, "title": title, "extract": TEXTS.get(title, "")}
        return web.json_response({"batchcomplete": True, "query": {"pages": [page]}})


async def _dripping(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    with suppress(ConnectionResetError):
        while True:
            await answer.write(b".")
            await asyncio.sleep(0.05)
    return answer


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    """It runs on a free port."""
    there = World()
    app = web.Application()
    app.router.add_get("/search", there.searxng)
    app.router.add_get("/brave", there.brave)
    for path in ("/html/", "/lite/"):
        app.router.add_get(path, there.duckduckgo)
    for path in ("/echo", "/api/orders", "/form"):
        app.router.add_route("*", path, there.echo)
    app.router.add_get("/{language:[a-z-]+}/api/rest_v1/page/summary/{title:.+}", there.summary)
    app.router.add_get("/{language:[a-z-]+}/w/api.php", there.api)
    app.router.add_route("*", "/{path:.*}", there.page)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    there.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield there
    finally:
        await runner.cleanup()
