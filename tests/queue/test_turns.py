"""One tenant's flood, however it comes to the broker, holds up no other tenant's call for long."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.stand import KINDS, LONG, Stand, item, names, stood
from tests.queue.wire import Wire
from tests.queue.yard import Yard
from tests.servers.kafka import Kafka
from toolgate import Caller, Toolgate

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
OTHER = Caller(tenant="globex", agent="billing")
FLOOD = 500
PLACES = 4
# Of the flood so many may run between: a few rounds of all places.
BETWEEN = 12 * PLACES


@pytest.fixture(params=KINDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stand]:
    """An empty queue."""
    async with stood(request, tmp_path) as found:
        yield found


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    queue = f'work = "always"\nconcurrency = {PLACES}\ndrain = 0'
    more = '[queue.producers.crm]\nsecret_env = "CRM_SECRET"\ntenants = ["*"]'
    with Yard(tmp_path, kafka.address, queue=queue, more=more) as place:
        yield place


async def test_what_a_broker_has_of_several_tenants_can_be_taken_in_turn(stand: Stand) -> None:
    queue, shipping = stand.queue, stand.shipping
    for number in range(8):
        await queue.put(item(f"a{number}", order="" if number else "first"))
    await queue.put(item("a8", order="first"))
    assert len(await shipping.send(20, window=20, again=LONG)) == 8
    assert list(await queue.take_sent(4, LONG)) == [], "there is nobody to take turns with"
    await queue.put(item("b0", "globex"))
    assert list(await queue.take_sent(4, LONG)) == [], "nobody was told that it is time"
    assert len(await shipping.send(20, window=20, again=LONG)) == 1
    assert sorted(names(await queue.take_sent(4, LONG))) == ["a0", "a1", "b0"]
    assert names(await queue.claim(["a0", "a1", "b0", "a2"], LONG)) == ["a2"]


async def flood(gate: Toolgate) -> None:
    calls = [gate.call("slow", {"text": f"a{one}"}, caller=ME, wait_s=0) for one in range(FLOOD)]
    assert {one.status for one in await asyncio.gather(*calls)} == {"queued"}


async def send(wire: Wire, yard: Yard, tenant: str, name: str) -> None:
    asked: dict[str, Any] = {
        "version": 1,
        "id": f"crm_{name:0>8}",
        "tool": "slow",
        "args": {"text": name},
        "caller": {"tenant": tenant, "agent": "billing"},
    }
    await wire.sign(yard.requests, asked, SECRET, by="crm", partition=0)


async def test_a_call_behind_a_flood_of_another_tenant_runs_within_a_few_rounds(
    yard: Yard,
) -> None:
    async with yard.gate() as gate:
        await flood(gate)
        await until(lambda: len(yard.order()) >= PLACES)
        before = len(yard.order())
        output = await gate.call("slow", {"text": "other"}, caller=OTHER)
        assert output.ok, output
        assert yard.order().index("other") < before + BETWEEN
        assert len(yard.order()) < FLOOD


async def test_a_flood_of_another_system_holds_up_no_other_tenant(yard: Yard) -> None:
    """All of it lies in one partition, and so does the call behind it."""
    async with yard.gate(work="never") as gate, Wire(yard) as wire:
        sent = [send(wire, yard, "acme", f"a{one}") for one in range(FLOOD)]
        await asyncio.gather(*sent)
        await send(wire, yard, "globex", "theirs")
        yard.worker()
        ours = asyncio.create_task(gate.call("slow", {"text": "ours"}, caller=OTHER))
        await until(lambda: "theirs" in yard.marks(), seconds=60)
        assert (await ours).ok
        assert max(map(yard.order().index, ("ours", "theirs"))) < FLOOD // 2
