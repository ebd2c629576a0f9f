"""Queued calls over a real Kafka: how many a second, how soon a lone one is answered, its cost.

Run it with `python -m benchmarks.queue`. The node is a house in this process, the workers are real
`toolgate worker` processes, all on one PostgreSQL. The floor is the bare way of a message there and
back with the same client: a topic out, an echo in another process, a topic home.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, options, report
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres
from tests.servers.process import AbsentError
from toolgate import Toolgate

TOOLGATE = (sys.executable, "-c", "from toolgate.cli.main import main; main()")
WARM, CALLS, CALLERS, ALONE = 300, 4_000, 256, 60
TICKS = os.sysconf("SC_CLK_TCK")
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
    """A process beside this one, and what it has used of the processor."""

    def __init__(self, stack: ExitStack, folder: Path, *command: str) -> None:
        self._process = Popen(command, cwd=folder, stdin=DEVNULL, stdout=PIPE)  # noqa: S603
        stack.callback(self._end)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise AbsentError("a worker that starts")

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()

    @property
    def cpu_s(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / TICKS


class Took:
    """What a stretch of calls took: a second's worth, and CPU a call here and beside."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        self._wall, self._own, self._beside = time.perf_counter(), time.process_time(), self._spent

    @property
    def _spent(self) -> float:
        return sum(child.cpu_s for child in self._children)

    def of(self, calls: int) -> tuple[float, float, float]:
        """Calls a second, µs of CPU a call in this process, and in the others."""
        wall = time.perf_counter() - self._wall
        own, beside = time.process_time() - self._own, self._spent - self._beside
        return calls / wall, own / calls * 1e6, beside / calls * 1e6


async def _many(gate: Toolgate, calls: int, callers: int) -> None:
    left = iter(range(calls))

    async def caller() -> None:
        for number in left:
            output = await gate.call("nothing", {"text": str(number)}, caller=CALLER)
            assert output.ok, output

    await asyncio.gather(*(caller() for _ in range(callers)))


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
        children = ExitStack()
        stack.push(children)
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
        echo = Child(children, folder, sys.executable, "-c", ECHO, broker)
        await consumer.getone()
        took = Took([echo])
        for number in range(CALLS):
            await producer.send("there", b"x" * 400 + str(number).encode())
        for _ in range(CALLS):
            await consumer.getone()
        a_second, own, beside = took.of(CALLS)
        rows.append(Row(name="bare aiokafka, there and back", value=a_second, unit="a second"))
        rows.append(Row(name="  CPU here", value=own, note="producer and consumer"))
        rows.append(Row(name="  CPU of the echo", value=beside))


async def _measured(rows: list[Row]) -> list[Bar]:
    with ExitStack() as stack, TemporaryDirectory() as name:
        kafka, postgres = stack.enter_context(Kafka()), stack.enter_context(Postgres(durable=True))
        folder = Path(name)
        await _bare(kafka.address, folder, rows)
        async with _node(folder, postgres.dsn, kafka.address) as gate:
            workers: list[Child] = []
            speeds: list[float] = []
            for number in (1, 2):
                workers.append(Child(stack, folder, *TOOLGATE, "worker"))
                await _many(gate, WARM, 32)
                took = Took(workers)
                await _many(gate, CALLS, CALLERS)
                a_second, own, beside = took.of(CALLS)
                speeds.append(a_second)
                label = f"queued call, {number} worker{'s' * (number > 1)}"
                rows.append(Row(name=label, value=a_second, unit="a second"))
                rows.append(Row(name="  CPU of the node", value=own))
                rows.append(Row(name="  CPU of the workers", value=beside))
            lone = await _lone(gate)
    median = statistics.median(lone)
    rows.append(Row(name="a lone queued call", value=min(lone), median=median, unit="ms"))
    growth = speeds[1] / speeds[0]
    rows.append(Row(name="2 workers", value=growth, unit="x one", note="on 2 cores in all"))
    return [
        Bar(name="queued calls, ms each with 2 workers", value=1e3 / speeds[1], limit=1, unit="ms"),
        Bar(name="a lone queued call, median", value=median, limit=25, unit="ms"),
    ]


def main() -> int:
    """Print the table; 1 where a bar does not hold."""
    chosen = options("Queued calls over Kafka.").parse_args()
    rows: list[Row] = []
    bars: list[Bar] = []
    try:
        bars = asyncio.run(_measured(rows))
    except AbsentError as error:
        rows.append(Row(name="queued calls", note=str(error)))
    return report("Queued calls", rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
