"""What a second node brings, and what a node costs that shares its store: `benchmarks.nodes`.

Real `toolgate serve` processes on one PostgreSQL and one Redis. Nodes, both servers and the load
generator have all cores together, so the table says what each part spent and how full the cores
were: where they are full, more nodes bring nothing. So two nodes are also measured that get a part
of a core each, as by a container's limit, which leaves room to see whether one hinders the other.
Rounds with one node and with two are interleaved; so are those of a pure call on the defaults
(SQLite, no Redis) and on PostgreSQL and Redis.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

from benchmarks.doors import CONCURRENCY, Asked, Case, proven, row
from benchmarks.fleet import Meter, Shared, held_to, shared
from benchmarks.houses import ADD, House, toolgate
from benchmarks.load import Load, Served, checked, generator, run
from benchmarks.measure import Bar, Row, options, report
from benchmarks.wires import FIRST, mcp
from tests.servers.process import AbsentError

CALLERS = 64
WARM = 1_000
PART = 0.25
EFFECT = "send"
EFFECTS = "effects"
AT_LEAST_X, AT_MOST_X = 1.5, 1.1
# Cores that are full to this part can do no more.
FULL = 0.95
NODES, POSTGRES, REDIS, LOAD = "nodes", "PostgreSQL", "Redis", "load generator"
OWN, TOGETHER = "SQLite, no Redis", "PostgreSQL and Redis"
LIMITED = ", rate limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """How one load went, and the CPU seconds of each part."""

    served: Served
    spent: dict[str, float]

    @property
    def full(self) -> float:
        """Which part of all cores was busy with it."""
        return sum(self.spent.values()) / self.served.seconds / (os.cpu_count() or 1)

    def cpu_us(self, part: str) -> float:
        """CPU of a part, a call."""
        return self.spent[part] / self.served.requests * 1e6


class Crew:
    """The nodes, asked one or all at a time. No call is sent twice."""

    def __init__(self, nodes: Sequence[House], servers: Shared, process: Executor) -> None:
        self._nodes = nodes
        self._process = process
        self._parts = {
            NODES: [node.pid for node in nodes],
            POSTGRES: [servers.postgres.pid],
            REDIS: [servers.redis.pid],
            LOAD: [process.submit(os.getpid).result()],
        }
        self._next = FIRST

    def ask(self, nodes: int, requests: int, part: float | None) -> Round:
        """So many of them, each held to a part of a core or to nothing."""
        asked = self._nodes[:nodes]
        load = Load(
            port=asked[0].port,
            more_ports=tuple(node.port for node in asked[1:]),
            wires=tuple(mcp(node.port, node.key, tool=EFFECT) for node in asked),
            requests=requests,
            connections=CALLERS,
            first=self._next,
        )
        self._next += requests
        every = [node.pid for node in self._nodes]
        with held_to(part, every) if part else nullcontext():
            meter = Meter(self._parts)
            served = checked(self._process.submit(run, load).result())
            return Round(served=served, spent=meter.seconds)


Pairs = list[tuple[Round, Round]]


def paired(crew: Crew, part: float | None, rounds: int, seconds: float) -> Pairs:
    """One node and two, in turns, after a warm-up that says how much fills a round."""
    rates = [crew.ask(nodes, WARM, part).served.rate for nodes in (1, 2)]
    requests = [int(rate * seconds) for rate in rates]
    return [(crew.ask(1, requests[0], part), crew.ask(2, requests[1], part)) for _ in range(rounds)]


def growth(pairs: Pairs) -> float:
    """The median of the rounds: each is of two stretches that lie side by side."""
    return statistics.median(two.served.rate / one.served.rate for one, two in pairs)


def fullness(took: Sequence[Round]) -> float:
    return statistics.median(one.full for one in took)


def _shown(label: str, took: Sequence[Round]) -> list[Row]:
    rates = [one.served.rate for one in took]
    p50 = statistics.median(one.served.percentile(0.5) / 1e3 for one in took)
    found = [
        Row(
            name=label,
            value=max(rates),
            median=statistics.median(rates),
            unit="a second",
            note=f"cores {fullness(took):.0%} full; p50 {p50:.3g} ms",
        )
    ]
    for part in (NODES, POSTGRES, REDIS, LOAD):
        costs = [one.cpu_us(part) for one in took]
        cores = statistics.median(one.spent[part] / one.served.seconds for one in took)
        found.append(
            Row(
                name=f"  CPU of {part}, a call",
                value=min(costs),
                median=statistics.median(costs),
                note=f"{cores:.2f} cores",
            )
        )
    return found


def _effects(servers: Shared, chosen: argparse.Namespace, rows: list[Row]) -> list[Bar]:
    tools = [ADD | {"name": EFFECT, "effect": "irreversible"}]
    settings = servers.settings(EFFECTS)
    with ExitStack() as stack:
        process = stack.enter_context(generator(None))
        first = stack.enter_context(toolgate(tools, settings=settings, is_limited=False, core=None))
        second = stack.enter_context(
            toolgate(tools, settings=settings, is_limited=False, core=None, key=first.key)
        )
        crew = Crew((first, second), servers, process)
        whole = paired(crew, None, chosen.rounds, chosen.seconds)
        small = paired(crew, PART, chosen.rounds, chosen.seconds)
    for label, pairs in (("", whole), (f" of {PART:g} cores", small)):
        for number, took in enumerate(zip(*pairs, strict=True), 1):
            nodes = f"{number} node{'s' * (number > 1)}{label}"
            rows.extend(_shown(f"side effects, {nodes}", took))
        rows.append(Row(name=f"2 nodes{label}", value=growth(pairs), unit="x one"))
    full = fullness([two for _, two in whole])
    return [
        Bar(
            name=f"side effects, 1 node of {PART:g} cores beside 2",
            value=1 / growth(small),
            limit=1 / AT_LEAST_X,
            unit="x",
        ),
        Bar(
            name=f"cores left idle by 2 nodes that are not {AT_LEAST_X:g} x one",
            value=0.0 if growth(whole) >= AT_LEAST_X else max(1 - full, 0.0) * 100,
            limit=(1 - FULL) * 100,
            unit="%",
        ),
    ]


def _cases(servers: Shared) -> dict[str, Case]:
    """A pure call on the defaults and on what nodes share, without rate limits and with."""
    return {
        f"pure, {place}{limits}": Case(
            open=lambda place=place, limits=limits: toolgate(
                settings="" if place == OWN else servers.settings("limited" if limits else "pure"),
                is_limited=bool(limits),
            ),
            wire=lambda house: mcp(house.port, house.key),
        )
        for limits in ("", LIMITED)
        for place in (OWN, TOGETHER)
    }


def _pure(servers: Shared, chosen: argparse.Namespace, rows: list[Row]) -> list[Bar]:
    # Where the load generator is: in a fleet they are on other machines.
    servers.pin(1)
    with ExitStack() as stack:
        process = stack.enter_context(generator())
        asked: dict[str, Asked] = {
            name: proven(case, stack, process) for name, case in _cases(servers).items()
        }
        took: dict[str, list[Served]] = {name: [] for name in asked}
        for _ in range(chosen.rounds):
            for name, one in asked.items():
                load = one.load(CONCURRENCY, chosen.seconds)
                took[name].append(checked(process.submit(run, load).result()))
    rows.extend(row(name, served) for name, served in took.items())
    ratios: dict[str, float] = {}
    for limits in ("", LIMITED):
        own, together = (took[f"pure, {place}{limits}"] for place in (OWN, TOGETHER))
        pairs = zip(own, together, strict=True)
        ratios[limits] = statistics.median(two.cpu_us / one.cpu_us for one, two in pairs)
        name = f"pure{limits}: {TOGETHER}"
        rows.append(Row(name=name, value=ratios[limits], unit="x SQLite, CPU of the node"))
    return [
        Bar(
            name=f"a pure call on {TOGETHER} / on {OWN}",
            value=ratios[""],
            limit=AT_MOST_X,
            unit="x CPU of the node",
        )
    ]


def _options() -> argparse.Namespace:
    parser = options("What a second node brings, and what sharing costs a call.")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long a round is")
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 where a bar does not hold."""
    chosen = _options()
    rows: list[Row] = []
    bars: list[Bar] = []
    try:
        with shared(EFFECTS, "pure", "limited") as servers:
            bars = _effects(servers, chosen, rows) + _pure(servers, chosen, rows)
    except AbsentError as error:
        rows.append(Row(name="nodes", note=str(error)))
    return report("Nodes on one PostgreSQL and one Redis", rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
