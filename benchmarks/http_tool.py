"""What a governed call of an HTTP tool costs: `python -m benchmarks.http_tool`.

The bare server of `benchmarks.net` answers. CPU is that of this process alone, one call at a time
and sixteen: the whole chain around a request that is made from a template, with a secret, and whose
answer is read as JSON; beside the same request by aiohttp, which nobody governs.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import orjson
import uvloop

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, cpu_us, options, report
from benchmarks.net import AT_ONCE, served, together
from toolgate import Toolgate
from toolgate.settings.outward import HttpTools, Net, Providers, Secret
from toolgate.settings.settings import Settings

PEER, READ, WRITE = "aiohttp, bare", "HTTP tool that reads", "HTTP tool with an effect"
MANY = f"{AT_ONCE} at a time"
AT_MOST_US = 250.0
_VARIABLE = "TOOLGATE_BENCH_TOKEN"


def _tool(name: str, port: int, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "provider": "http",
        "config": {
            "url": f"http://127.0.0.1:{port}/v1/users/{{id}}",
            "method": "POST",
            "query": {"q": "{text}", "limit": 10},
            "headers": {"X-Team": "{team}"},
            "auth": {"kind": "bearer", "secret": "bench"},
        },
        "input_schema": {
            "type": "object",
            "properties": {one: {"type": "string"} for one in ("id", "text", "team", "note")},
            "required": ["id"],
            "additionalProperties": False,
        },
        **fields,
    }


async def measured() -> list[Row]:
    os.environ[_VARIABLE] = "0123456789abcdef"
    async with served() as port:
        secret = Secret(value_env=_VARIABLE, hosts=(f"127.0.0.1:{port}",))
        with TemporaryDirectory(prefix="toolgate-bench-") as folder:
            root = Path(folder)
            (root / "tools").mkdir()
            tools = [
                _tool("read", port, effect="pure"),
                _tool("write", port, effect="irreversible"),
            ]
            (root / "tools" / "bench.json").write_bytes(orjson.dumps({"tools": tools}))
            settings = Settings(
                root=root,
                net=Net(allow=(f"127.0.0.1:{port}",)),
                providers=Providers(http=HttpTools(secrets={"bench": secret})),
            )
            async with Toolgate.open(settings) as gate:
                return await _compared(gate, port)


async def _compared(gate: Toolgate, port: int) -> list[Row]:
    args = {"id": "u-17", "text": "a few words", "team": "desk", "note": "hello"}
    url = f"http://127.0.0.1:{port}/v1/users/u-17"
    params = {"q": "a few words", "limit": "10"}
    headers = {"X-Team": "desk", "Authorization": "Bearer 0123456789abcdef"}

    async def read() -> None:
        assert (await gate.call("read", args, caller=CALLER)).ok

    async def write() -> None:
        assert (await gate.call("write", args, caller=CALLER)).ok

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def peer() -> None:
            body = {"note": "hello"}
            async with session.post(url, params=params, headers=headers, json=body) as answer:
                assert await answer.json()

        alone = await cpu_us({PEER: peer, READ: read, WRITE: write}, rounds=11, seconds=0.1)
        crowd = {PEER: together(peer), READ: together(read), WRITE: together(write)}
        many = await cpu_us(crowd, rounds=11, seconds=0.2)
    return [
        *alone.values(),
        *(
            Row(
                name=f"{name}, {MANY}",
                value=(row.value or 0) / AT_ONCE,
                median=(row.median or 0) / AT_ONCE,
            )
            for name, row in many.items()
        ),
    ]


def main() -> int:
    chosen = options("What a governed call of an HTTP tool costs.").parse_args()
    found = uvloop.run(measured())
    best = {row.name: row.value or 0.0 for row in found}
    bars = [
        Bar(name=READ, value=best[READ], limit=AT_MOST_US, unit="µs"),
        Bar(name=f"{READ}, {MANY}", value=best[f"{READ}, {MANY}"], limit=AT_MOST_US, unit="µs"),
    ]
    return report("A call of an HTTP tool", found, bars, baseline=PEER, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
