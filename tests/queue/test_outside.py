"""A tool of `provider: queue` goes the way of all queued calls: brokers that are away delay it."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from toolgate import Toolgate
from toolgate.call import Output
from toolgate.errors import InvalidSpecs, Overloaded, ProviderUnavailable
from toolgate.queue.message import read_output
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
PRODUCER = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]
"""
OUTSIDE = """\
  - name: {name}
    provider: queue
    config: {{topic: "{topic}", producer: crm}}
    effect: irreversible
    timeout: 20
    input_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""
MOST = 4


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, queue=f"waiting = {MOST}", more=PRODUCER) as place:
        file = place.root / "tools" / "yard.yaml"
        topic = f"{place.name}.crm"
        more = OUTSIDE.format(name="crm_add", topic=topic)
        more += OUTSIDE.format(name="crm_now", topic=topic) + "    execution: inline\n"
        file.write_text(file.read_text("utf-8") + more, "utf-8")
        yield place


async def _queued(gate: Toolgate, text: str) -> Output:
    """A call that is over has its place until those that wait are counted again."""
    while True:
        try:
            return await gate.call("crm_add", {"text": text}, caller=ME, wait_s=0)
        except Overloaded:
            await asyncio.sleep(0.05)


def _answer(record: Any) -> dict[str, Any]:
    request = orjson.loads(record.value)
    output = {"status": "success", "data": {"added": request["args"]["text"]}}
    head = {"version": 1, "id": request["id"], "tool": request["tool"], "tenant": "acme"}
    return {**head, "output": output, "ended_ms": 1}


async def test_while_the_brokers_are_away_its_calls_wait_and_beyond_the_bound_are_refused(
    yard: Yard, kafka: Kafka
) -> None:
    async with yard.gate(work="always") as gate:
        assert (await gate.call("look", {"text": "before"}, caller=ME)).ok
        kafka.stop()
        try:
            kept = [await _queued(gate, f"t{number}") for number in range(MOST)]
            assert {one.status for one in kept} == {"queued"}
            with pytest.raises(Overloaded) as refused:
                await gate.call("crm_add", {"text": "more"}, caller=ME, wait_s=0)
            assert "Nothing ran" in refused.value.message
        finally:
            kafka.start()
        async with Wire(yard) as wire:
            records = await wire.records(f"{yard.name}.crm", MOST)
            for record in records:
                await wire.sign(yard.results, _answer(record), SECRET, by="crm", key=True)
            ended = await over(gate, [one.call_id for one in kept])
        assert len(records) == MOST, "each is handed over once"
        data = [read_output(one.output).data for one in ended]
        assert sorted(one["added"] for one in data) == [f"t{number}" for number in range(MOST)]


async def test_without_the_queue_it_is_refused_while_the_brokers_are_away(
    yard: Yard, kafka: Kafka
) -> None:
    kafka.stop()
    try:
        async with yard.gate() as gate:
            with pytest.raises(ProviderUnavailable):
                await gate.call("crm_now", {"text": "now"}, caller=ME)
            kept = await gate.call("crm_add", {"text": "later"}, caller=ME, wait_s=0)
            assert kept.status == "queued"
    finally:
        kafka.start()


def _spec(**more: Any) -> ToolSpec:
    given = {"name": "t", "provider": "queue", "config": {"topic": "crm"}, "effect": "pure", **more}
    return read_tool(given, origin=Origin("file", "t.yaml"))


def test_it_is_queued_unless_it_says_otherwise_and_no_other_provider_is() -> None:
    assert _spec().execution == "queued"
    assert _spec(execution="inline").execution == "inline"
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert _spec(order_by="a", input_schema=schema).order_by == "a"
    assert _spec(provider="http", config={"url": "https://example.org"}).execution == "inline"
    assert read_tool({"name": "t"}, origin=Origin("file", "t.yaml")).execution == "inline"


def test_what_it_is_known_by_depends_on_what_it_does_not_on_who_wrote_it_down() -> None:
    assert _spec().fingerprint == _spec(execution="queued").fingerprint
    assert _spec().fingerprint != _spec(execution="inline").fingerprint


def test_a_secret_argument_is_not_queued_without_a_word_of_it() -> None:
    schema = {"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}
    with pytest.raises(InvalidSpecs) as wrong:
        _spec(input_schema=schema)
    assert "Write execution: inline" in str(wrong.value)
    assert _spec(input_schema=schema, execution="inline").execution == "inline"
