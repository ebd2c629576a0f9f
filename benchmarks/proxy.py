"""What a governed call costs through toolgate to an MCP server: `python -m benchmarks.proxy`.

A thin server of MCP 2026-07-28 stands behind each of them, in a process of its own; the load
generator is in another. CPU is that of the process in the middle alone, with all that a call causes
in it: key, gate, validation of arguments and result, limits, metrics, journal, both wires.
"""

import argparse
import statistics
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from benchmarks.doors import CONCURRENCY, CROWD, Asked, Case, Rounds, proven, row
from benchmarks.houses import House, started, toolgate
from benchmarks.load import checked, generator, run
from benchmarks.measure import Bar, Row, here, options, report
from benchmarks.wires import mcp

FLOOR = "bare ASGI + aiohttp, the floor"
OURS = "toolgate, governed"
PEER = "FastMCP 4 proxy, ungoverned"
SECONDS = 1.0
# As in `doors`: the bar, and what the floor took where it was set.
AT_MOST_US = 160.0
FLOOR_US = 126.0
AT_LEAST = 6_000.0
ALONE_MS = 0.45
TAIL_MS = 40.0
SETTINGS = """
[mcp.servers.thin]
url = "http://127.0.0.1:{port}/mcp"
prefix = ""
trust = "hints"
pin = false
"""
# CPU µs a call and calls a second, as handed to us: this file has not measured them there.
ELSEWHERE = {
    "nginx": "19 µs, 39,800/s",
    "raw ASGI proxy": "44 µs, 22,800/s",
    "ASGI + aiohttp proxy": "126 µs, 7,900/s",
    "Docker MCP Gateway, ungoverned": "239 µs, 4,200/s",
    "FastMCP 4 proxy, a kept client": "2,590 µs",
}


@contextmanager
def behind(name: str, thin: House) -> Generator[House]:
    """One of `benchmarks.proxies` in front of the thin server."""
    with started("benchmarks.proxies", name, str(thin.port)) as house:
        yield house


def cases(thin: House) -> dict[str, Case]:
    """All that stand in front of it."""
    settings = SETTINGS.format(port=thin.port)
    return {
        FLOOR: Case(open=lambda: behind("floor", thin), wire=lambda house: mcp(house.port)),
        OURS: Case(
            open=lambda: toolgate(own=False, settings=settings),
            wire=lambda house: mcp(house.port, house.key),
        ),
        PEER: Case(open=lambda: behind("fastmcp", thin), wire=lambda house: mcp(house.port)),
    }


def bars_of(took: Rounds, rows: dict[str, Row]) -> tuple[Bar, ...]:
    usual, alone, crowd = (took.get((OURS, many), []) for many in (CONCURRENCY, 1, CROWD))
    rate, floor = max((one.rate for one in usual), default=None), rows[FLOOR].value
    tails = [one.percentile(0.99) / 1e3 for one in crowd]
    return (
        Bar(
            name=f"a governed call ({AT_MOST_US:g} by a floor of {FLOOR_US:g})",
            value=rows[OURS].value,
            limit=here(AT_MOST_US, floor, FLOOR_US),
            unit="µs CPU",
        ),
        Bar(
            name=f"µs between two calls, for at least {AT_LEAST:,.0f} a second",
            value=1e6 / rate if rate else None,
            limit=here(1e6 / AT_LEAST, floor, FLOOR_US),
            unit="µs",
        ),
        Bar(
            name="p50 alone, the best round",
            value=min((one.percentile(0.5) / 1e3 for one in alone), default=None),
            limit=ALONE_MS,
            unit="ms",
        ),
        Bar(
            name=f"p99 at concurrency {CROWD}, median",
            value=statistics.median(tails) if tails else None,
            limit=TAIL_MS,
            unit="ms",
        ),
    )


def _options() -> argparse.Namespace:
    parser = options("What a governed call costs through toolgate to an MCP server.")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a round is")
    return parser.parse_args()


def main() -> int:
    chosen = _options()
    ready: dict[str, Asked] = {}
    found: dict[str, Row] = {}
    took: Rounds = {}
    with ExitStack() as stack, generator() as process:
        thin = stack.enter_context(started("benchmarks.proxies", "thin"))
        ways = cases(thin)
        for name, case in ways.items():
            try:
                ready[name] = proven(case, stack, process)
            except Exception as error:  # noqa: BLE001  whatever a peer raises is its row
                reason = f"{type(error).__name__}: {error}".splitlines()[0][:160]
                found[name] = Row(name=name, note=reason)
        wanted = [(name, CONCURRENCY) for name in ready]
        wanted += [(name, few) for few in (1, CROWD) for name in (FLOOR, OURS) if name in ready]
        for _ in range(chosen.rounds):
            for name, many in wanted:
                served = process.submit(run, ready[name].load(many, chosen.seconds)).result()
                took.setdefault((name, many), []).append(checked(served))
    found |= {name: row(name, took[name, CONCURRENCY]) for name in ready}
    rows = [found[name] for name in ways]
    rows += [
        row(f"{name}, concurrency {many}", served)
        for (name, many), served in took.items()
        if many != CONCURRENCY
    ]
    title = f"CPU in the middle per call, concurrency {CONCURRENCY} unless it says otherwise"
    code = report(title, rows, bars_of(took, found), baseline=FLOOR, as_json=chosen.json)
    if not chosen.json:
        print("\nelsewhere, not measured in this run:")
        for name, figures in ELSEWHERE.items():
            print(f"  {name}: {figures}")
    return code


if __name__ == "__main__":
    sys.exit(main())
