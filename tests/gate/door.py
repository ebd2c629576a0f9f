"""The HTTP door without a socket: one request at a time, from bytes to bytes."""

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from toolgate.runtime import Runtime
from toolgate.server.app import App
from toolgate.settings.settings import Server


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def body(self) -> Any:
        return orjson.loads(self.text)


class Door:
    def __init__(self, gate: Runtime) -> None:
        self._app = App(gate, Server())

    async def ask(
        self,
        method: str,
        path: str,
        key: str,
        body: object = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        place, _, query = path.partition("?")
        sent: Iterator[dict[str, Any]] = iter(
            [{"type": "http.request", "body": b"" if body is None else orjson.dumps(body)}]
        )
        got: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            for message in sent:
                return message
            # Whoever asks does not hang up.
            return await asyncio.get_running_loop().create_future()

        async def send(message: MutableMapping[str, Any]) -> None:
            got.append(message)

        given = (("host", "127.0.0.1:8700"), ("authorization", f"Bearer {key}"), *headers)
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(place),
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given],
        }
        await self._app(scope, receive, send)
        return Answer(got[0]["status"], got[1]["body"].decode())
