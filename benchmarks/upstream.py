"""What a call of an MCP server costs its client: `python -m benchmarks.upstream`.

A thin server in a process of its own answers by the id that it is asked with. CPU is that of this
process alone: sixteen calls at a time on one upstream, beside a bare request of aiohttp with the
same body, read and parsed.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import uvloop

from benchmarks.measure import Bar, Row, cpu_us, options, report
from benchmarks.net import AT_ONCE, together
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.sandbox.choosing import Refusing
from toolgate.settings.outward import McpServer
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.dialing import connected

OURS, LINED, PEER = "toolgate, an upstream's call", "the same, with a line", "aiohttp, bare"
ARGS = {"a": 1, "b": 2}
# Of what aiohttp takes for a bare request with the same body.
AT_MOST = 0.6
_SERVER = """
import asyncio, re, uvloop
ID = re.compile(rb'"id":(\\d+)')
DISCOVER = b'{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
RESULT = b'{"content":[{"type":"text","text":"3"}],"isError":false,"resultType":"complete"}'
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: "
class Thin(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data):
        result = DISCOVER if b'"server/discover"' in data else RESULT
        body = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ID.search(data)[1], result)
        self.transport.write(b"%b%d\\r\\n\\r\\n%b" % (HEAD, len(body), body))
async def main():
    server = await asyncio.get_running_loop().create_server(Thin, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


class Listening:
    """A caller that can be told, and is told nothing."""

    capabilities: dict[str, Any] = {}  # noqa: RUF012  nobody changes it
    wants_progress = False
    log_level = ""

    def progress(self, done: float, total: float | None, message: str) -> None: ...
    def log(self, level: str, message: Any) -> None: ...
    def queued(self, call_id: str) -> None: ...

    async def ask(self, questions: Any) -> Any: ...


@asynccontextmanager
async def served() -> AsyncGenerator[int]:
    """The port of the server."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SERVER, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        yield int(await server.stdout.readline())
    finally:
        server.kill()
        await server.wait()


async def measured() -> list[Row]:
    async with served() as port:
        url = f"http://127.0.0.1:{port}/mcp"
        client = HttpClient(Guard())
        upstream: Connected = connected(
            "bench", McpServer(url=url), client=client, sandbox=Refusing(""), environ={}
        )
        await upstream.open()
        assert not upstream.problem, upstream.problem
        body = orjson.dumps({"id": 1, "method": "tools/call", "params": {"arguments": ARGS}})
        headers = {"Content-Type": "application/json", "Mcp-Method": "tools/call"}
        line = Listening()

        async def ours() -> None:
            await upstream.call("add", ARGS, seconds=30)

        async def lined() -> None:
            await upstream.call("add", ARGS, seconds=30, line=line)

        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def peer() -> None:
                async with session.post(url, data=body, headers=headers) as answer:
                    orjson.loads(await answer.read())

            calls = {OURS: together(ours), LINED: together(lined), PEER: together(peer)}
            found = await cpu_us(calls, rounds=15, seconds=0.2)
        await upstream.close()
        await client.close()
    return [
        Row(name=name, value=(row.value or 0) / AT_ONCE, median=(row.median or 0) / AT_ONCE)
        for name, row in found.items()
    ]


def main() -> int:
    chosen = options("What a call of an MCP server costs its client.").parse_args()
    found = uvloop.run(measured())
    best = {row.name: row.value or 0.0 for row in found}
    bars = [
        Bar(
            name="a call, of what a bare request of aiohttp takes",
            value=best[OURS] / best[PEER],
            limit=AT_MOST,
            unit="",
        )
    ]
    return report("An MCP call, 16 at a time", found, bars, baseline=PEER, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
