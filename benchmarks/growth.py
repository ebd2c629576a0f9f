"""What the doors cost when there are many tools: `python -m benchmarks.growth`.

Two servers that differ in their catalog only: one tool, and the same tool beside 10,000 real ones.
A call has to cost the same. A list of all is asked page by page, as a client does.
"""

import http.client
import json
import statistics
import sys
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks.doors import CONCURRENCY, SECONDS, Asked, Case, proven, row
from benchmarks.houses import House, toolgate
from benchmarks.load import LOOPBACK, Served, checked, cpu_seconds, generator, run
from benchmarks.measure import Bar, Row, options, report
from benchmarks.rows import many
from benchmarks.wires import mcp, message

TOOLS = 10_000
ONE, MANY = "tools/call, one tool", f"tools/call, {TOOLS:,} tools"
AT_MOST_RATIO = 1.1
LIST_MS = 10.0
REPEATS = 9
# As handed to us: this file has not measured them.
ELSEWHERE = {
    "a call, many tools": "FastMCP 0.96 to 1,150 ms, LiteLLM 30 to 770, ContextForge 40 to 590",
    "tools/list of 10,000": "Docker 28.6 ms; SDK, FastMCP, ContextForge about 1,700; LiteLLM 5,400",
}


def definitions() -> tuple[list[dict[str, Any]], str]:
    """The real tools as a tool file has them, all run by a function that takes anything."""
    rows, about = many(TOOLS)
    run_by = {"module": "measured_tools", "function": "anything"}
    return [
        {
            "name": one.name,
            "description": one.description,
            "input_schema": one.parameters,
            "effect": "pure",
            "config": run_by,
        }
        for one in rows
    ], about


def listed(house: House) -> tuple[float, int, int, int]:
    """All pages of `tools/list`: CPU ms of the server, tools, pages, bytes."""
    names: set[str] = set()
    count = pages = size = 0
    params: dict[str, Any] = {}
    connection = http.client.HTTPConnection(LOOPBACK, house.port, timeout=60)
    connection.connect()
    before = cpu_seconds(house.pid)
    while True:
        headers, body = message("tools/list", params, port=house.port, key=house.key)
        connection.request("POST", "/mcp", body=body, headers=headers)
        response = connection.getresponse()
        text = response.read()
        if response.status != http.client.OK:
            raise ValueError(f"tools/list was answered {response.status} {text[:200]!r}")
        result = json.loads(text)["result"]
        names |= {one["name"] for one in result["tools"]}
        count, pages, size = count + len(result["tools"]), pages + 1, size + len(text)
        if result.get("nextCursor") is None:
            break
        params = {"cursor": result["nextCursor"]}
    took = (cpu_seconds(house.pid) - before) * 1e3
    connection.close()
    if len(names) != count:
        raise ValueError(f"{count - len(names):,} names came twice")
    return took, count, pages, size


def list_rows(process: Executor, house: House, about: str) -> list[Row]:
    """Cold, then warm."""
    cold, count, pages, size = process.submit(listed, house).result()
    if count != TOOLS + 1:
        raise ValueError(f"{count:,} of {TOOLS + 1:,} tools were listed")
    warm = [process.submit(listed, house).result()[0] for _ in range(REPEATS)]
    note = f"CPU; {pages} pages, {size / 1e6:.1f} MB; {about}"
    return [
        Row(name=f"tools/list, {TOOLS:,} tools, cold", value=cold, unit="ms", note=note),
        Row(
            name=f"tools/list, {TOOLS:,} tools, warm",
            value=min(warm),
            median=statistics.median(warm),
            unit="ms",
            note="CPU",
        ),
    ]


def calls(process: Executor, ready: dict[str, Asked], rounds: int) -> dict[str, list[Served]]:
    """The two servers in turn."""
    took: dict[str, list[Served]] = {name: [] for name in ready}
    for _ in range(rounds):
        for name, asked in ready.items():
            served = process.submit(run, asked.load(CONCURRENCY, SECONDS)).result()
            took[name].append(checked(served))
    return took


def main() -> int:
    parser = options("What the doors cost when there are many tools.")
    parser.add_argument("--rounds", type=int, default=REPEATS, help="how often each is measured")
    chosen = parser.parse_args()
    tools, about = definitions()
    with ExitStack() as stack, generator() as process:
        cases = {ONE: toolgate, MANY: partial(toolgate, tools)}
        ready = {
            name: proven(
                Case(open=opened, wire=lambda house: mcp(house.port, house.key)), stack, process
            )
            for name, opened in cases.items()
        }
        rows = list_rows(process, ready[MANY].house, about)
        took = calls(process, ready, chosen.rounds)
    few, lots = (row(name, took[name]) for name in ready)
    ratios = [one.cpu_us / other.cpu_us for one, other in zip(took[MANY], took[ONE], strict=True)]
    bars = (
        Bar(
            name=f"{MANY} / one, median",
            value=statistics.median(ratios),
            limit=AT_MOST_RATIO,
            unit="x",
        ),
        Bar(name=f"{rows[1].name}, median CPU", value=rows[1].median, limit=LIST_MS, unit="ms"),
    )
    code = report("Many tools", [few, lots, *rows], bars, as_json=chosen.json)
    if not chosen.json:
        print("\nelsewhere, not measured in this run:")
        for name, figures in ELSEWHERE.items():
            print(f"  {name}: {figures}")
    return code


if __name__ == "__main__":
    sys.exit(main())
