"""Queued calls over a real Kafka: how many a second, how soon a lone one is answered, its cost.

Run it with `python -m benchmarks.queue`. The node is a house in this process, the workers are real
`toolgate worker` processes, all on one PostgreSQL. The floor is the bare way of a message there and
back with the same client: a topic out, an echo in another process, a topic home.

Node, workers, Kafka and PostgreSQL have all cores together, so the table says what each spent and
how full the cores were: where they are full, a second worker brings nothing. So workers are also
measured that get a part of a core each, as by a container's limit: then they are what is short.
Rounds with one worker and with two are interleaved.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.embedded import CALLER
from benchmarks.fleet import Meter, held_to
from benchmarks.measure import Bar, Row, options, report
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres
from tests.servers.process import AbsentError
from toolgate import Caller, Toolgate

TOOLGATE = (sys.executable, "-c", "from toolgate.cli.main import main; main()")
# More callers than two workers have places: both have their hands full.
WARM, CALLS, CALLERS, ALONE = 600, 4_000, 512, 60
# Of two tenants: no more of one wait for theirs at a time.
TENANTS = (CALLER, Caller(tenant="umbrella", agent="billing", user="bob"))
# So little that two workers leave room to all that serves them.
PART = 0.15
AT_LEAST_X = 1.5
NODE, WORKERS, KAFKA, POSTGRES = "the node", "the workers", "Kafka", "PostgreSQL"
SETTINGS = """\
[store]
url = "{store}"
[queue]
url = "kafka://{kafka}"
work = "never"
concurrency = 128
[tools]
builtin = ["echo"]
"""
TOOLS = """\
tools:
  - name: nothing
    config: {builtin: echo}
    effect: pure
    execution: queued
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
"""
ECHO = """\
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

async def main(broker):
    consumer = AIOKafkaConsumer("there", bootstrap_servers=broker, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(bootstrap_servers=broker, acks="all", enable_idempotence=True)
    await consumer.start()
    await producer.start()
    print("ready", flush=True)
    async for message in consumer:
        await producer.send("back", message.value)

asyncio.run(main(sys.argv[1]))
"""


class Child:
    """A process beside this one."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._process = Popen(command, cwd=folder, stdin=DEVNULL, stdout=PIPE)  # noqa: S603
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise AbsentError("a worker that starts")
        self.pid = self._process.pid

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """How many calls a stretch was, how long it took, and the CPU seconds of each part."""

    calls: int
    seconds: float
    spent: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds

    @property
    def full(self) -> float:
        """Which part of all cores was busy with it."""
        return sum(self.spent.values()) / self.seconds / (os.cpu_count() or 1)

    def cpu_us(self, part: str) -> float:
        """CPU of a part, a call."""
        return self.spent[part] / self.calls * 1e6

    def cores(self, part: str) -> float:
        """How many it kept busy."""
        return self.spent[part] / self.seconds


class Stretch:
    """From now on. `beside`: the processes of each part but the node, which is this one."""

    def __init__(self, beside: Mapping[str, Sequence[int]]) -> None:
        self._meter = Meter(beside)
        self._wall, self._own = time.perf_counter(), time.process_time()

    def of(self, calls: int) -> Round:
        """Until now, with so many calls in it."""
        seconds, own = time.perf_counter() - self._wall, time.process_time() - self._own
        return Round(calls=calls, seconds=seconds, spent={NODE: own, **self._meter.seconds})


Pairs = list[tuple[Round, Round]]


class Crew:
    """A node and its workers: one that stays, and one that comes and goes."""

    def __init__(self, gate: Toolgate, folder: Path, servers: Mapping[str, Sequence[int]]) -> None:
        self._gate = gate
        self._folder = folder
        self._servers = servers
        self._first = Child(folder, *TOOLGATE, "worker")

    def end(self) -> None:
        self._first.end()

    async def paired(self, part: float | None, rounds: int, seconds: float) -> Pairs:
        """One worker and two, in turns, each held to a part of a core or to nothing."""
        found: Pairs = []
        for _ in range(rounds):
            one = await self._round([self._first], part, seconds)
            second = Child(self._folder, *TOOLGATE, "worker")
            try:
                found.append((one, await self._round([self._first, second], part, seconds)))
            finally:
                second.end()
        return found

    async def _round(self, workers: Sequence[Child], part: float | None, seconds: float) -> Round:
        pids = [one.pid for one in workers]
        # Whoever has come or gone changes who has which partitions.
        await _many(self._gate, WARM, 32)
        with held_to(part, pids) if part else nullcontext():
            before = Stretch({})
            await _many(self._gate, WARM, CALLERS)
            calls = int(before.of(WARM).rate * seconds)
            stretch = Stretch({WORKERS: pids, **self._servers})
            await _many(self._gate, calls, CALLERS)
            return stretch.of(calls)


def growth(pairs: Pairs) -> float:
    """The median of the rounds: each is of two stretches that lie side by side."""
    return statistics.median(two.rate / one.rate for one, two in pairs)


def _shown(label: str, took: Sequence[Round]) -> list[Row]:
    rates = [one.rate for one in took]
    full = statistics.median(one.full for one in took)
    median = statistics.median(rates)
    note = f"cores {full:.0%} full"
    found = [Row(name=label, value=max(rates), median=median, unit="a second", note=note)]
    for part in (NODE, WORKERS, KAFKA, POSTGRES):
        costs = [one.cpu_us(part) for one in took]
        cores = statistics.median(one.cores(part) for one in took)
        found.append(
            Row(
                name=f"  CPU of {part}, a call",
                value=min(costs),
                median=statistics.median(costs),
                note=f"{cores:.2f} cores",
            )
        )
    return found


async def _many(gate: Toolgate, calls: int, callers: int) -> None:
    left = iter(range(calls))

    async def caller(who: Caller) -> None:
        for number in left:
            output = await gate.call("nothing", {"text": str(number)}, caller=who)
            assert output.ok, output

    await asyncio.gather(*(caller(TENANTS[number % 2]) for number in range(callers)))


async def _lone(gate: Toolgate) -> list[float]:
    took: list[float] = []
    for number in range(ALONE):
        began = time.perf_counter()
        output = await gate.call("nothing", {"text": str(number)}, caller=CALLER)
        took.append((time.perf_counter() - began) * 1e3)
        assert output.ok, output
        await asyncio.sleep(0.02)
    return took


@asynccontextmanager
async def _node(folder: Path, store: str, kafka: str) -> AsyncGenerator[Toolgate]:
    (folder / "tools").mkdir()
    (folder / "toolgate.toml").write_text(SETTINGS.format(store=store, kafka=kafka), "utf-8")
    (folder / "tools" / "nothing.yaml").write_text(TOOLS, "utf-8")
    async with Toolgate.open(folder / "toolgate.toml") as gate:
        yield gate


async def _bare(broker: str, folder: Path, rows: list[Row]) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # noqa: PLC0415  an extra

    async with AsyncExitStack() as stack:
        consumer: Any = AIOKafkaConsumer("back", bootstrap_servers=broker)
        producer: Any = AIOKafkaProducer(
            bootstrap_servers=broker, acks="all", enable_idempotence=True
        )
        await producer.start()
        stack.push_async_callback(producer.stop)
        for topic in ("there", "back"):
            await producer.send_and_wait(topic, b"first")
        await consumer.start()
        stack.push_async_callback(consumer.stop)
        echo = Child(folder, sys.executable, "-c", ECHO, broker)
        stack.callback(echo.end)
        await consumer.getone()
        stretch = Stretch({WORKERS: [echo.pid]})
        for number in range(CALLS):
            await producer.send("there", b"x" * 400 + str(number).encode())
        for _ in range(CALLS):
            await consumer.getone()
        took = stretch.of(CALLS)
        rows.append(Row(name="bare aiokafka, there and back", value=took.rate, unit="a second"))
        rows.append(Row(name="  CPU here", value=took.cpu_us(NODE), note="producer and consumer"))
        rows.append(Row(name="  CPU of the echo", value=took.cpu_us(WORKERS)))


async def _measured(chosen: argparse.Namespace, rows: list[Row]) -> list[Bar]:
    with ExitStack() as stack, TemporaryDirectory() as name:
        kafka, postgres = stack.enter_context(Kafka()), stack.enter_context(Postgres(durable=True))
        folder = Path(name)
        await _bare(kafka.address, folder, rows)
        async with _node(folder, postgres.dsn, kafka.address) as gate:
            crew = Crew(gate, folder, {KAFKA: [kafka.pid], POSTGRES: [postgres.pid]})
            stack.callback(crew.end)
            whole = await crew.paired(None, chosen.rounds, chosen.seconds)
            small = await crew.paired(PART, chosen.rounds, chosen.seconds)
            lone = await _lone(gate)
    for label, pairs in (("", whole), (f" of {PART:g} cores", small)):
        for number, took in enumerate(zip(*pairs, strict=True), 1):
            rows.extend(_shown(f"queued call, {number} worker{'s' * (number > 1)}{label}", took))
        rows.append(Row(name=f"2 workers{label}", value=growth(pairs), unit="x one"))
    median = statistics.median(lone)
    rows.append(Row(name="a lone queued call", value=min(lone), median=median, unit="ms"))
    each = statistics.median(1e3 / two.rate for _, two in whole)
    return [
        Bar(name="queued calls, ms each with 2 workers", value=each, limit=1, unit="ms"),
        Bar(name="a lone queued call, median", value=median, limit=25, unit="ms"),
        Bar(
            name=f"queued calls, 1 worker of {PART:g} cores beside 2",
            value=1 / growth(small),
            limit=1 / AT_LEAST_X,
            unit="x",
        ),
    ]


def _options() -> argparse.Namespace:
    parser = options("Queued calls over Kafka.")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a round is")
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 where a bar does not hold."""
    chosen = _options()
    rows: list[Row] = []
    bars: list[Bar] = []
    try:
        bars = asyncio.run(_measured(chosen, rows))
    except AbsentError as error:
        rows.append(Row(name="queued calls", note=str(error)))
    return report("Queued calls", rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
