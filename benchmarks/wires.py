"""What is sent through a door, and how its answer is checked.

A wire is one request, prepared once. Each time it is sent it carries another number, twice: as
its id and as an argument. The answer has to bring both back, so that an answer which belongs to
somebody else is seen. Not here: sockets (`load`), and what stands behind the door (`houses`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

TOOL = "add"
NEW, OLD = "2026-07-28", "2025-11-25"
MORE = 3
# All numbers have nine digits, so that every request has the same length.
FIRST = 100_000_000
_NUMBER = b"987654321"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A request in pieces, between which its number stands; and where in the answer to look."""

    pieces: tuple[bytes, ...]
    id_at: tuple[str, ...] = ()
    data_at: tuple[str, ...] = ()

    def request(self, number: int) -> bytes:
        """The bytes to send."""
        return (b"%d" % number).join(self.pieces)

    def wrong(self, number: int, status: int, body: bytes) -> str | None:
        """What is wrong with the answer; `None` is the right one."""
        shown = f"{status} {body[:300].decode('utf-8', 'replace')}"
        try:
            answer = orjson.loads(body)
            is_right = (
                status == 200
                and (not self.id_at or _found(answer, self.id_at) == number)
                and self.is_data(number, _found(answer, self.data_at))
            )
        except (ValueError, LookupError, TypeError):
            return shown
        return None if is_right else f"not the answer to {number}: {shown}"

    def is_data(self, number: int, data: Any) -> bool:
        """Whether it is the sum of the number that was sent."""
        return data == {"sum": number + MORE}


def _found(answer: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        answer = answer[name]
    return answer


def _pieces(path: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, ...]:
    """A POST as it goes over the wire, parted where its number stands."""
    lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return tuple(("\r\n".join(lines).encode() + b"\r\n\r\n" + body).split(_NUMBER))


def _headers(port: int, key: str, accept: str = "application/json") -> dict[str, str]:
    named = {
        "Host": f"127.0.0.1:{port}",
        "Accept": accept,
        "Content-Type": "application/json",
    }
    return named | {"Authorization": f"Bearer {key}"} if key else named


def meta() -> dict[str, Any]:
    """What every request of the new revision says about its client."""
    return {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientInfo": {"name": "benchmarks", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def message(
    method: str,
    params: Mapping[str, Any],
    *,
    port: int,
    key: str = "",
    revision: str = NEW,
    session: str = "",
) -> tuple[dict[str, str], bytes]:
    """Headers and body of a request of a revision, as the official client sends it."""
    headers = _headers(port, key, "application/json, text/event-stream")
    headers["MCP-Protocol-Version"] = revision
    if revision == NEW:
        params = {**params, "_meta": meta()}
        headers["Mcp-Method"] = method
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
    elif session:
        headers["Mcp-Session-Id"] = session
    body = {"jsonrpc": "2.0", "id": int(_NUMBER), "method": method, "params": params}
    return headers, orjson.dumps(body)


def mcp(
    port: int, key: str = "", *, revision: str = NEW, session: str = "", tool: str = TOOL
) -> Wire:
    """`tools/call` over MCP."""
    params = {"name": tool, "arguments": {"a": int(_NUMBER), "b": MORE}}
    headers, body = message(
        "tools/call", params, port=port, key=key, revision=revision, session=session
    )
    return Wire(
        pieces=_pieces("/mcp", body, headers),
        id_at=("id",),
        data_at=("result", "structuredContent"),
    )


def rest(port: int, key: str) -> Wire:
    """`POST /v1/call`; what tells its answer from another's is the data."""
    body = orjson.dumps({"tool": TOOL, "args": {"a": int(_NUMBER), "b": MORE}})
    return Wire(pieces=_pieces("/v1/call", body, _headers(port, key)), data_at=("data",))
