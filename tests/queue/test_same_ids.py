"""Messages of two systems under one id: whose call it is stays, and the other one is told."""

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

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
# Of these tests.
CRM, ERP = "s3cret-of-the-crm", "s3cret-of-the-erp"
PRODUCERS = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]

[queue.producers.erp]
secret_env = "ERP_SECRET"
tenants = ["globex"]
"""
WHY = "it cannot be read: its id is that of a call of another tenant"
BATCH = "order-00000001"


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", CRM)
    monkeypatch.setenv("ERP_SECRET", ERP)
    with Yard(tmp_path, kafka.address, queue='work = "always"', more=PRODUCERS) as place:
        yield place


def asked(name: str, tenant: str, text: str, **more: Any) -> dict[str, Any]:
    caller = {"tenant": tenant, "agent": "billing"}
    head = {"version": 1, "id": name, "tool": "pay", "caller": caller}
    return {**head, "args": {"text": text}, **more}


async def crm(wire: Wire, yard: Yard, name: str, text: str, **more: Any) -> None:
    message = asked(name, "acme", text, **more)
    await wire.sign(yard.requests, message, CRM, by="crm", partition=0)


async def erp(wire: Wire, yard: Yard, name: str, text: str) -> None:
    await wire.sign(yard.requests, asked(name, "globex", text), ERP, by="erp", partition=0)


async def whys(wire: Wire, yard: Yard, many: int) -> list[str]:
    return [orjson.loads(one.value)["why"] for one in await wire.records(yard.dead, many)]


async def test_who_sends_a_call_under_an_id_of_another_tenants_is_told_that_it_did_not_run(
    yard: Yard,
) -> None:
    async with yard.gate(work="never") as gate, Wire(yard) as wire:
        waits = (await gate.call("pay", {"text": "waits"}, caller=ME, wait_s=0)).call_id
        await wire.read(yard.requests, 1)
        # While it is in the queue, and of two that come together.
        await erp(wire, yard, waits, "e0")
        await crm(wire, yard, BATCH, "first")
        await erp(wire, yard, BATCH, "e1")
    async with yard.gate() as gate, Wire(yard) as wire:
        await over(gate, [waits, BATCH])
        # Once it is over; and sent twice by whose it is, it is the same call.
        await erp(wire, yard, BATCH, "e2")
        await crm(wire, yard, BATCH, "first")
        await erp(wire, yard, "order-00000002", "own")
        await over(gate, ["order-00000002"])
        told = await whys(wire, yard, 3)
        assert all(why.startswith(WHY) for why in told), told
        assert (await gate.queue.calls.depth()).dead == 3
        assert yard.marks() == {"waits": 1, "first": 1, "own": 1}
        kept = await gate.queue.calls.find("acme", BATCH)
        assert kept is not None, "whose it is stays"


async def test_without_a_look_at_whose_it_is_a_call_would_be_lost_without_a_word(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.brokers.arrivals import KafkaArrivals  # noqa: PLC0415  its client is an extra

    def blind(*_: object) -> list[Any]:
        return []

    monkeypatch.setattr(KafkaArrivals, "_strayed", blind)
    async with yard.gate() as gate, Wire(yard) as wire:
        await crm(wire, yard, BATCH, "first")
        await over(gate, [BATCH])
        await erp(wire, yard, BATCH, "e2")
        await erp(wire, yard, "order-00000002", "own")
        await over(gate, ["order-00000002"])
        assert (await gate.queue.calls.depth()).dead == 0
        assert yard.marks() == {"first": 1, "own": 1}


@pytest.mark.parametrize("key", ["again 0f0f call_1 1", "k" * 256, "a\0b", "ü"])
async def test_a_key_of_another_system_is_as_every_callers_is(yard: Yard, key: str) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        await crm(wire, yard, "order-00000003", "odd", key=key)
        await crm(wire, yard, "order-00000004", "good", key="k" * 255)
        await until(lambda: yard.marks() == {"good": 1})
        (why,) = await whys(wire, yard, 1)
        assert "An idempotency key has 1 to 255 visible ASCII characters" in why
        entry = await gate.journal.find("acme", "order-00000004")
        assert entry is not None
        assert entry.key == "k" * 255


async def test_without_the_look_at_a_key_one_of_the_houses_own_could_be_written(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.brokers import foreign  # noqa: PLC0415  its client is an extra

    monkeypatch.setattr(foreign, "check_key", str)
    async with yard.gate() as gate, Wire(yard) as wire:
        await crm(wire, yard, "order-00000003", "odd", key="again 0f0f call_1 1")
        await over(gate, ["order-00000003"])
        entry = await gate.journal.find("acme", "order-00000003")
        assert entry is not None
        assert entry.key == "again 0f0f call_1 1"
