"""What a request to elsewhere costs: `python -m benchmarks.net`.

A bare server in a process of its own answers each request with the same bytes. CPU is that of this
process alone: sixteen requests at a time on kept connections, through the guarded client, through
aiohttp, and by nothing but a protocol that writes and counts, which is the floor.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import uvloop

from benchmarks.measure import Bar, Call, Row, cpu_us, options, report
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard

FLOOR, OURS, STREAMED, PEER = "bare protocol", "toolgate", "toolgate, streamed", "aiohttp"
AT_ONCE = 16
BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Authorization": "Bearer 0123456789abcdef",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
# Of what aiohttp takes for the same request.
AT_MOST = 0.6
_SERVER = """
import asyncio, uvloop
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}'
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: "
WHOLE = HEAD + str(len(ANSWER)).encode() + b"\\r\\n\\r\\n" + ANSWER
class Bare(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.transport.write(WHOLE * data.count(b" HTTP/1.1"))
async def main():
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


class _Bare(asyncio.Protocol):
    """Nothing but bytes there and back."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[bytes]
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._waiter.set_result(data)

    async def ask(self, whole: bytes) -> bytes:
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(whole)
        return await self._waiter

    def close(self) -> None:
        self._transport.close()


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


def together(one: Call) -> Call:
    """So many at a time."""

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(AT_ONCE)))

    return all_of_them


async def measured() -> list[Row]:
    async with served() as port:
        url = f"http://127.0.0.1:{port}/mcp"
        ours = HttpClient(Guard().named(url))
        loop = asyncio.get_running_loop()
        bare = [(await loop.create_connection(_Bare, "127.0.0.1", port))[1] for _ in range(AT_ONCE)]
        lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        length = f"Content-Length: {len(BODY)}"
        whole = f"POST /mcp HTTP/1.1\r\nHost: x\r\n{length}\r\n{lines}\r\n".encode() + BODY

        async def floor() -> None:
            await asyncio.gather(*(one.ask(whole) for one in bare))

        async def guarded() -> None:
            answer = await ours.send("POST", url, headers=HEADERS, body=BODY, most=1_000_000)
            assert answer.status == 200

        async def streamed() -> None:
            async with ours.stream("POST", url, headers=HEADERS, body=BODY, seconds=30) as answer:
                assert await answer.read(1_000_000)

        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def peer() -> None:
                async with session.post(url, headers=HEADERS, data=BODY) as answer:
                    assert await answer.read()

            calls = {
                FLOOR: floor,
                OURS: together(guarded),
                STREAMED: together(streamed),
                PEER: together(peer),
            }
            found = await cpu_us(calls, rounds=15, seconds=0.2)
        await ours.close()
        for one in bare:
            one.close()
    return [
        Row(name=name, value=(row.value or 0) / AT_ONCE, median=(row.median or 0) / AT_ONCE)
        for name, row in found.items()
    ]


def main() -> int:
    chosen = options("What a request to elsewhere costs.").parse_args()
    found = uvloop.run(measured())
    best = {row.name: row.value or 0.0 for row in found}
    bars = [
        Bar(
            name="the guarded client, of what aiohttp takes",
            value=best[OURS] / best[PEER],
            limit=AT_MOST,
            unit="",
        )
    ]
    return report("A request, 16 at a time", found, bars, baseline=PEER, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
