"""What a call costs through a door: `python -m benchmarks.doors`.

Real servers in processes of their own, a load generator in another. CPU is that of the server's
process alone, with all that a call causes in it: key, gate, validation, limits, metrics, journal.
The generator stays awake; what it costs a server to wake one up has rows of its own.
Rounds are interleaved, so that a machine that slows down slows all of them and ratios stay true.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from benchmarks.houses import House, session, toolgate, ungoverned
from benchmarks.load import Load, Served, checked, generator, run
from benchmarks.measure import Bar, Row, here, options, report
from benchmarks.wires import OLD, Wire, mcp, rest

FLOOR = "bare ASGI, the floor"
OURS = "toolgate, MCP 2026-07-28"
CONCURRENCY, CROWD = 16, 64
SECONDS = 1.0
TRIED = 200
# The bar, and what the floor took where it was set.
AT_MOST_US = 90.0
FLOOR_US = 36.0
ALONE_MS = 0.35
TAIL = 4.0
# CPU µs a call and calls a second, as handed to us: this file has not measured them there.
ELSEWHERE = {
    "bare ASGI": "33 to 39 µs",
    "MCP SDK": "322 to 587 µs, 3,100/s",
    "FastMCP": "1,097 µs, 916/s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One server and one way to ask it."""

    open: Callable[[], AbstractContextManager[House]]
    wire: Callable[[House], Wire]


def _ungoverned(name: str) -> Case:
    return Case(open=lambda: ungoverned(name), wire=lambda house: mcp(house.port))


CASES: dict[str, Case] = {
    FLOOR: _ungoverned("floor"),
    OURS: Case(open=toolgate, wire=lambda house: mcp(house.port, house.key)),
    f"toolgate, MCP {OLD}": Case(
        open=toolgate,
        wire=lambda house: mcp(house.port, house.key, revision=OLD, session=session(house)),
    ),
    "toolgate, REST": Case(open=toolgate, wire=lambda house: rest(house.port, house.key)),
    "MCP SDK server, ungoverned": _ungoverned("sdk"),
    "FastMCP 4 server, ungoverned": _ungoverned("fastmcp"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A server that has given the right answer, and how much it can be asked in a round."""

    house: House
    wire: Wire
    rate: float

    def load(self, connections: int, seconds: float, *, awake: bool = False) -> Load:
        """As many requests as fill about that time."""
        return Load(
            port=self.house.port,
            wires=(self.wire,),
            requests=max(int(self.rate * seconds), 4 * connections),
            connections=connections,
            pid=self.house.pid,
            awake=awake,
        )


def proven(case: Case, stack: ExitStack, process: Executor) -> Asked:
    """The server, once it has answered rightly; this is its warm-up too."""
    house = stack.enter_context(case.open())
    asked = Asked(house=house, wire=case.wire(house), rate=TRIED)
    for _ in range(2):
        served = checked(process.submit(run, asked.load(CONCURRENCY, 1.0)).result())
        asked = Asked(house=house, wire=asked.wire, rate=served.rate)
    return asked


def opened(stack: ExitStack, process: Executor) -> tuple[dict[str, Asked], dict[str, Row]]:
    """The servers that answer, and rows for those that do not."""
    ready: dict[str, Asked] = {}
    missing: dict[str, Row] = {}
    for name, case in CASES.items():
        try:
            ready[name] = proven(case, stack, process)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its row
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            missing[name] = Row(name=name, note=reason)
    return ready, missing


def row(name: str, took: list[Served]) -> Row:
    """CPU a call, the best round and the median; how fast it went."""
    cpu = [one.cpu_us for one in took]
    rate = max(one.rate for one in took)
    p50, p99 = (statistics.median(one.percentile(at) / 1e3 for one in took) for at in (0.5, 0.99))
    return Row(
        name=name,
        value=min(cpu),
        median=statistics.median(cpu),
        note=f"{rate:,.0f} a second; p50 {p50:.3g} ms, p99 {p99:.3g} ms",
    )


Rounds = dict[tuple[str, int], list[Served]]
# In place of the connections: the usual ones, of a generator that sleeps when it has nothing to do.
ASLEEP = 0


def measured(process: Executor, ready: dict[str, Asked], rounds: int, seconds: float) -> Rounds:
    """Every server at the usual concurrency; the floor and ours also alone, in a crowd, and by a
    generator that sleeps.
    """
    wanted = [(name, CONCURRENCY) for name in ready]
    wanted += [(name, few) for few in (1, CROWD, ASLEEP) for name in (FLOOR, OURS) if name in ready]
    took: Rounds = {one: [] for one in wanted}
    for _ in range(rounds):
        for name, connections in wanted:
            awake = connections != ASLEEP
            load = ready[name].load(connections or CONCURRENCY, seconds, awake=awake)
            served = process.submit(run, load).result()
            took[name, connections].append(checked(served))
    return took


def bars_of(took: Rounds, rows: dict[str, Row]) -> tuple[Bar, ...]:
    ours, floor = rows[OURS].value, rows[FLOOR].value
    alone, crowd = took.get((OURS, 1), []), took.get((OURS, CROWD), [])
    p50 = min((one.percentile(0.5) / 1e3 for one in alone), default=None)
    tails = [one.percentile(0.99) / one.percentile(0.5) for one in crowd]
    return (
        Bar(
            name=f"tools/call over MCP, all it causes ({AT_MOST_US:g} by a floor of {FLOOR_US:g})",
            value=ours,
            limit=here(AT_MOST_US, floor, FLOOR_US),
            unit="µs CPU",
        ),
        Bar(name="p50 alone, the best round", value=p50, limit=ALONE_MS, unit="ms"),
        Bar(
            name=f"p99 / p50 at concurrency {CROWD}, median",
            value=statistics.median(tails) if tails else None,
            limit=TAIL,
            unit="x",
        ),
    )


def _options() -> argparse.Namespace:
    parser = options("What a call costs through each door, beside the ungoverned servers.")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a round is")
    return parser.parse_args()


def main() -> int:
    chosen = _options()
    with ExitStack() as stack, generator() as process:
        ready, missing = opened(stack, process)
        took = measured(process, ready, chosen.rounds, chosen.seconds)
    found = missing | {name: row(name, took[name, CONCURRENCY]) for name in ready}
    rows = [found[name] for name in CASES]
    rows += [
        row(f"{name}, {f'concurrency {connections}' if connections else 'asleep between'}", served)
        for (name, connections), served in took.items()
        if connections != CONCURRENCY
    ]
    title = f"CPU of the server per call, concurrency {CONCURRENCY} unless it says otherwise"
    code = report(title, rows, bars_of(took, found), baseline=FLOOR, as_json=chosen.json)
    if not chosen.json:
        print("\nelsewhere, not measured in this run:")
        for name, figures in ELSEWHERE.items():
            print(f"  {name}: {figures}")
    return code


if __name__ == "__main__":
    sys.exit(main())
