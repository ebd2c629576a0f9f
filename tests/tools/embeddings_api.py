"""A service that makes embeddings, in the format of OpenAI's, on loopback."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

KEY = "sk-a-key-of-the-tests"
_SIZE = 8


class EmbeddingsApi:
    """Vectors count letters: texts of the same letters are the same. `answer` can be changed."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.answer: Callable[[dict[str, Any]], Any] = usual

    async def embeddings(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            problem = {"message": "Incorrect API key provided", "type": "invalid_request_error"}
            return web.json_response({"error": problem}, status=401)
        body = await request.json()
        self.requests.append(body)
        return web.json_response(self.answer(body), status=self.status)


def usual(body: dict[str, Any]) -> dict[str, Any]:
    """As the service answers, with the vectors in no particular order."""
    data = [
        {"object": "embedding", "index": at, "embedding": _vector(text)}
        for at, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}


def _vector(text: str) -> list[float]:
    counts = [1.0] * _SIZE
    for letter in text.lower():
        counts[ord(letter) % _SIZE] += 5.0
    return counts


@asynccontextmanager
async def serving() -> AsyncGenerator[EmbeddingsApi]:
    """As long as it is needed."""
    api = EmbeddingsApi()
    app = web.Application()
    app.router.add_post("/v1/embeddings", api.embeddings)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}/v1"
    try:
        yield api
    finally:
        await runner.cleanup()
