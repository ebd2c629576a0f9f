"""One trace from the caller to whoever runs the call: by the headers of the messages between."""

import asyncio
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from tests.telemetry.collector import Collector
from toolgate import Toolgate
from toolgate.queue.message import read_output

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6", "O1"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
MORE = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]

[telemetry]
traces = "{url}"
"""
OUTSIDE = """\
  - name: {name}
    provider: queue
    config: {{topic: "{topic}", producer: crm}}
    effect: irreversible
    timeout: 20
    execution: {execution}
    input_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""


@pytest.fixture
def collector() -> Generator[Collector]:
    with Collector() as one:
        yield one


@pytest.fixture
def yard(
    tmp_path: Path, kafka: Kafka, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, more=MORE.format(url=collector.url)) as place:
        file = place.root / "tools" / "yard.yaml"
        given = {"inline": "crm_now", "queued": "crm_later"}
        more = "".join(
            OUTSIDE.format(name=name, topic=f"{place.name}.crm", execution=execution)
            for execution, name in given.items()
        )
        file.write_text(file.read_text("utf-8") + more, "utf-8")
        yield place


def traced(gate: Toolgate) -> Any:
    """As a door does with a request that came with a trace."""
    assert gate.watch.spans is not None
    return gate.watch.spans.continued({"traceparent": PARENT})


async def run(yard: Yard, collector: Collector) -> None:
    """All that a worker has to tell is told when it has ended."""
    worker = yard.worker()
    await until(lambda: bool(yard.marks()), seconds=60)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 30) == 0
    await until(lambda: bool(collector.named("toolgate.provider")))


async def test_the_worker_goes_on_with_the_callers_trace(yard: Yard, collector: Collector) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        with traced(gate):
            output = await gate.call("pay", {"text": "one"}, caller=ME, wait_s=0)
        (record,) = await wire.records(yard.requests, 1)
        headers = dict(record.headers)
        assert headers["traceparent"].decode().split("-")[1] == TRACE
        assert orjson.loads(record.value)["trace"]["traceparent"] == headers["traceparent"].decode()
        await run(yard, collector)
        await over(gate, [output.call_id])
    [provided] = collector.named("toolgate.provider")
    assert provided.trace_id.hex() == TRACE
    calls = collector.named("toolgate.call")
    assert {one.trace_id.hex() for one in calls} == {TRACE}
    here = next(one for one in calls if one.parent_span_id.hex() == PARENT.split("-")[2])
    there = next(one for one in calls if one is not here)
    assert there.parent_span_id == here.span_id


async def test_a_trace_beside_what_another_system_sends_goes_on(
    yard: Yard, collector: Collector
) -> None:
    asked = {
        "version": 1,
        "id": "crm_00000001",
        "tool": "pay",
        "args": {"text": "theirs"},
        "caller": {"tenant": "acme", "agent": "billing"},
    }
    async with yard.gate(), Wire(yard) as wire:
        beside = [("traceparent", PARENT.encode()), ("other", b"\xff")]
        await wire.sign(yard.requests, asked, SECRET, by="crm", headers=beside)
        await run(yard, collector)
    [provided] = collector.named("toolgate.provider")
    assert provided.trace_id.hex() == TRACE


async def answered(wire: Wire, yard: Yard, record: Any) -> None:
    request = orjson.loads(record.value)
    answer = {
        "version": 1,
        "id": request["id"],
        "tool": request["tool"],
        "tenant": "acme",
        "output": {"status": "success", "data": {"added": 1}},
        "ended_ms": 1,
    }
    await wire.sign(yard.results, answer, SECRET, by="crm", key=True)


async def test_a_system_that_runs_a_tool_is_told_the_trace(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        with traced(gate):
            calling = asyncio.create_task(gate.call("crm_now", {"text": "a"}, caller=ME))
        (record,) = await wire.records(f"{yard.name}.crm", 1)
        told = dict(record.headers)["traceparent"].decode()
        assert told.split("-")[1] == TRACE
        assert orjson.loads(record.value)["trace"] == {"traceparent": told}
        await answered(wire, yard, record)
        assert (await calling).data == {"added": 1}


async def test_a_queued_call_of_another_systems_tool_outlasts_brokers_that_are_away(
    yard: Yard, kafka: Kafka
) -> None:
    async with yard.gate(work="always") as gate:
        assert (await gate.call("look", {"text": "before"}, caller=ME)).ok
        kafka.stop()
        try:
            kept = await gate.call("crm_later", {"text": "a"}, caller=ME, wait_s=0)
            assert kept.status == "queued"
        finally:
            kafka.start()
        async with Wire(yard) as wire:
            (record,) = await wire.records(f"{yard.name}.crm", 1)
            await answered(wire, yard, record)
            [found] = await over(gate, [kept.call_id])
        assert read_output(found.output).data == {"added": 1}
