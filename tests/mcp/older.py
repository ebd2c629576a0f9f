"""A client of the older revision that says and hears what it likes, without a library."""

from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from tests.mcp.house import LEGACY, House

BOTH = "application/json, text/event-stream"


class Older:
    """A session of it."""

    def __init__(self, house: House, http: aiohttp.ClientSession, key: str = "") -> None:
        self._house, self._http = house, http
        self.headers = {"Authorization": f"Bearer {key or house.ann}", "Accept": BOTH}

    async def begin(self, capabilities: Mapping[str, Any] | None = None) -> "Older":
        params = {"protocolVersion": LEGACY, "capabilities": dict(capabilities or {})}
        async with self.post("initialize", params | {"clientInfo": {}}) as answer:
            assert answer.status == 200
            self.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        return self

    def post(self, method: str, params: Any = None, *, id_: Any = 1, accept: str = BOTH) -> Any:
        given: dict[str, Any] = params or {}
        body = {"jsonrpc": "2.0", "id": id_, "method": method, "params": given}
        headers = self.headers | {"Accept": accept}
        return self._http.post(self._house.url, data=orjson.dumps(body), headers=headers)

    async def ask(self, method: str, params: Any = None, **more: Any) -> Any:
        async with self.post(method, params, **more) as answer:
            return await answer.json()

    def get(self, last: str | None = None) -> Any:
        more = {} if last is None else {"Last-Event-ID": last}
        return self._http.get(self._house.url, headers=self.headers | more)

    def delete(self) -> Any:
        return self._http.delete(self._house.url, headers=self.headers)
