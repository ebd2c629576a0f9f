"""How toolgate starts in front of many MCP servers: `python -m benchmarks.others`.

Twenty thin servers of MCP 2026-07-28 with fifty real tools each, in a process of their own. They
are asked, looked at and pinned as any others: the time is from the start of the process until a
client's `tools/list` has all that an operator need not look at first. The second start finds in
its store what was agreed to.
"""

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import uvloop
from aiohttp import web

from benchmarks.growth import listed
from benchmarks.houses import House, started, toolgate
from benchmarks.load import LOOPBACK
from benchmarks.measure import Bar, Row, family, options, report, rss_bytes
from benchmarks.rows import many
from benchmarks.start import IDLE_SECONDS, PATIENCE_SECONDS
from benchmarks.wires import NEW

SERVERS, EACH = 20, 50
TOOLS = SERVERS * EACH
# So many may wait for an operator: real descriptions hold words that are looked for.
MOST_HELD = TOOLS // 20
AT_MOST_S, AT_MOST_MB = 3.0, 200.0
REPEATS = 5
END: dict[str, Any] = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"}
DISCOVERED: dict[str, Any] = {
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "thin", "version": "1"},
    **END,
}
ONE = """
[mcp.servers.s{number}]
url = "http://127.0.0.1:{port}/{number}/mcp"
trust = "hints"
"""


async def serve(port: int) -> None:
    """All of them, until it is ended: the path says which."""
    rows, _ = many(TOOLS)
    tools = [
        {
            "name": row.name.replace("/", "_").replace(":", "_"),
            "description": row.description,
            "inputSchema": row.parameters,
            "annotations": {"readOnlyHint": True},
        }
        for row in rows
    ]
    parts = (tools[at : at + EACH] for at in range(0, TOOLS, EACH))
    lists = [{"tools": part, **END} for part in parts]

    async def one(request: web.Request) -> web.Response:
        asked = await request.json()
        is_first = asked["method"] == "server/discover"
        result = DISCOVERED if is_first else lists[int(request.match_info["which"])]
        body = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    app = web.Application()
    app.router.add_post("/{which}/mcp", one)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, port).start()
    await asyncio.Event().wait()


# An agent's key is told once, when its store is made.
KEYS: dict[Path, str] = {}


def start(settings: str, store: Path) -> tuple[float, float, int, int]:
    """Seconds until it greets, and until all are listed; how many; and bytes when it is idle."""
    began = time.perf_counter()
    given = f'{settings}\n[store]\nurl = "sqlite:///{store}"\n'
    with toolgate(
        own=False, settings=given, core=None, is_limited=False, key=KEYS.get(store, "")
    ) as house:
        KEYS[store] = house.key
        greeted = time.perf_counter() - began
        count = _all(house, began)
        took = time.perf_counter() - began
        time.sleep(IDLE_SECONDS)
        return greeted, took, count, sum(rss_bytes(each) for each in family(house.pid))


def _all(house: House, began: float) -> int:
    """How many are listed, once nearly all are."""
    while True:
        _, count, _, _ = listed(house)
        if count >= TOOLS - MOST_HELD:
            return count
        if time.perf_counter() - began > PATIENCE_SECONDS:
            raise RuntimeError(f"only {count:,} of {TOOLS:,} tools are listed")
        time.sleep(0.02)


def rows_of(settings: str) -> list[Row]:
    """New stores, then one that has seen the servers."""
    found: list[Row] = []
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        stores = [Path(folder) / f"{at}.db" for at in range(REPEATS)]
        for name, where in (("first start", stores), ("later start", stores[-1:] * REPEATS)):
            took = [start(settings, store) for store in where]
            greeted, whole, counts, held = zip(*took, strict=True)
            note = f"greets after {min(greeted):.2f} s; {min(counts):,} of {TOOLS:,} tools"
            found += [
                Row(
                    name=f"{name}, all listed",
                    value=min(whole),
                    median=sorted(whole)[REPEATS // 2],
                    unit="s",
                    note=note,
                ),
                Row(name=f"{name}, idle memory", value=max(held) / 1e6, unit="MB"),
            ]
    return found


def main() -> int:
    if sys.argv[1:2] == ["serve"]:
        uvloop.run(serve(int(sys.argv[2])))
        return 0
    chosen = options("How toolgate starts in front of many MCP servers.").parse_args()
    with started("benchmarks.others", "serve") as behind:
        settings = "".join(ONE.format(number=at, port=behind.port) for at in range(SERVERS))
        rows = rows_of(settings)
    bars = (
        *(
            Bar(name=f"{row.name}, median", value=row.median, limit=AT_MOST_S, unit="s")
            for row in rows[::2]
        ),
        *(Bar(name=row.name, value=row.value, limit=AT_MOST_MB, unit="MB") for row in rows[1::2]),
    )
    title = f"{TOOLS:,} tools of {SERVERS} MCP servers"
    return report(title, rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
