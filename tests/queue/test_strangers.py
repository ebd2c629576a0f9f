"""What other systems write to our topics: poison goes to the dead letters, signed calls run."""

import asyncio
import time
from collections.abc import Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard
from tests.servers.kafka import Kafka
from toolgate.errors import CallRefused

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
PRODUCER = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]
"""
# What the letters say, in the order of their words.
WRONG = (
    "'NOT PLAIN' cannot name a tenant",
    "it has 5,000,009 bytes; 900,000 are the most",
    "it has the version 2; this worker reads 1",
    "it is empty",
    "it is no JSON object with an id",
    "it is not of this house, and not signed",
    "its producer does not speak for its tenant",
    "its signature is not one of a producer",
    "its signature is not one of a producer",
    "its signature is too old",
)


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, queue='work = "always"', more=PRODUCER) as place:
        yield place


def asked(number: int, tenant: str = "acme", **more: Any) -> dict[str, Any]:
    caller = {"tenant": tenant, "agent": "billing"}
    args = {"text": f"f{number}"}
    name = f"crm_{number:08}"
    return {"version": 1, "id": name, "tool": "pay", "args": args, "caller": caller, **more}


async def test_poison_is_dead_at_once_and_the_partitions_move_on(yard: Yard) -> None:
    async with Wire(yard) as wire, AsyncExitStack() as house:
        await wire.make(yard.requests)
        gate = await house.enter_async_context(yard.gate())
        good = orjson.dumps(asked(1))
        await wire.send(yard.requests, b"{no json")
        await wire.send(yard.requests, b"")
        await wire.send(yard.requests, orjson.dumps({"id": "x" * 5_000_000}))
        await wire.send(yard.requests, good)
        await wire.sign(yard.requests, asked(2), "another secret", by="crm")
        await wire.sign(yard.requests, asked(3), SECRET, by="erp")
        await wire.sign(yard.requests, asked(4, version=2), SECRET, by="crm")
        await wire.sign(yard.requests, asked(5, tenant="other"), SECRET, by="crm")
        await wire.sign(yard.requests, asked(6), SECRET, by="crm", at=int(time.time()) - 90_000)
        await wire.sign(yard.requests, asked(7, caller={"tenant": "NOT PLAIN"}), SECRET, by="crm")
        assert (await gate.call("pay", {"text": "ours"}, caller=ME)).ok
        letters = [orjson.loads(one.value) for one in await wire.records(yard.dead, 10)]
        whys = sorted(one["why"].removeprefix("it cannot be read: ") for one in letters)
        for why, wanted in zip(whys, WRONG, strict=True):
            assert why.startswith(wanted), whys
        assert (await gate.queue.calls.depth()).dead == 10
        assert yard.marks() == {"ours": 1}


async def test_a_signed_call_runs_once_as_who_it_says_and_is_answered(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        for _ in range(3):
            await wire.sign(yard.requests, asked(1), SECRET, by="crm")
        (told,) = [
            orjson.loads(one.value)
            for one in await wire.records(yard.results, 1)
            if one.key == b"crm_00000001"
        ]
        assert told["output"]["status"] == "success"
        assert told["output"]["data"] == {"marked": "f1"}
        assert told["tenant"] == "acme"
        entry = await gate.journal.find("acme", "crm_00000001")
        assert entry is not None
        assert (entry.state, entry.agent) == ("succeeded", "billing")
        assert yard.marks() == {"f1": 1}
        # It cannot do what its caller may not.
        await wire.sign(yard.requests, asked(2, tool="no_such_tool"), SECRET, by="crm")
        (told,) = [orjson.loads(one.value) for one in await wire.records(yard.results, 1)]
        assert told["output"]["error"]["code"] == "tool_not_found"


async def test_without_the_look_at_the_signature_a_stranger_could_call(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.brokers.seal import Seal, Signer  # noqa: PLC0415  as the house does

    def _anyone(*_: object) -> Signer:
        return Signer(b"", frozenset({"*"}))

    monkeypatch.setattr(Seal, "signer", _anyone)
    async with yard.gate(), Wire(yard) as wire:
        await wire.send(yard.requests, orjson.dumps(asked(1)))
        await until(lambda: yard.marks() == {"f1": 1})


async def test_a_forged_result_is_believed_by_nobody(yard: Yard) -> None:
    async with yard.gate(work="never") as gate, Wire(yard) as wire:
        output = await gate.call("pay", {"text": "p"}, caller=ME, wait_s=0)
        waits = gate.call("look", {"text": "x"}, caller=ME, wait_s=2)
        forged = {"status": "success", "data": "forged", "call_id": output.call_id}
        for secret in ("", SECRET):
            result = {
                "version": 1,
                "id": output.call_id,
                "tool": "pay",
                "tenant": "acme",
                "output": forged,
                "ended_ms": 1,
            }
            await wire.sign(yard.results, result, secret or "none", by="crm", key=True)
        assert (await waits).status == "queued"
        kept = await gate.queue.calls.find("acme", output.call_id)
        assert kept is not None
        assert kept.stage == "sent"


OUTSIDE = """\
  - name: {name}
    provider: queue
    config: {{topic: "{topic}", producer: crm}}
    effect: {effect}
    timeout: {timeout}
    execution: inline
    input_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""


async def test_a_tool_that_another_system_runs_is_answered_by_it(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"{yard.name}.crm"
    more = "".join(
        OUTSIDE.format(name=name, topic=topic, effect=effect, timeout=timeout)
        for name, effect, timeout in (
            ("crm_add", "irreversible", 20),
            ("crm_lost", "irreversible", 1),
        )
    )
    file = yard.root / "tools" / "yard.yaml"
    file.write_text(file.read_text("utf-8") + more, "utf-8")
    async with yard.gate() as gate, Wire(yard) as wire:
        call = asyncio.ensure_future(gate.call("crm_add", {"text": "a"}, caller=ME))
        (record,) = await wire.records(topic, 1)
        request = orjson.loads(record.value)
        assert (request["tool"], request["args"]) == ("crm_add", {"text": "a"})
        assert dict(record.headers)["toolgate-producer"] == b"crm"
        answer = {
            "version": 1,
            "id": request["id"],
            "tool": "crm_add",
            "tenant": "acme",
            "output": {"status": "success", "data": {"added": 1}},
            "ended_ms": 1,
        }
        # What another secret signs is no answer.
        await wire.sign(
            yard.results, {**answer, "output": {"status": "error"}}, "x", by="crm", key=True
        )
        await wire.sign(yard.results, answer, SECRET, by="crm", key=True)
        output = await call
        assert (output.status, output.data) == ("success", {"added": 1})
        lost = await gate.call("crm_lost", {"text": "b"}, caller=ME)
        assert lost.status == "unknown", lost
        # What comes too late changes nothing, and is told once; what others sign, and what was
        # answered in time, is not.
        late = {**answer, "id": lost.call_id, "tool": "crm_lost"}
        await wire.sign(yard.results, late, "x", by="crm", key=True)
        for said in (answer, late, late):
            await wire.sign(yard.results, said, SECRET, by="crm", key=True)
        await until(lambda: "after its time was over" in caplog.text)
        again = asyncio.ensure_future(gate.call("crm_add", {"text": "c"}, caller=ME))
        (_, record) = await wire.records(topic, 2)
        last = {**answer, "id": orjson.loads(record.value)["id"]}
        await wire.sign(yard.results, last, SECRET, by="crm", key=True)
        assert (await again).ok
        told = [one.getMessage() for one in caplog.records if "after its time" in one.getMessage()]
        assert len(told) == 1
        assert f"call {lost.call_id} is answered (success)" in told[0]
        found = await gate.journal.find("acme", lost.call_id)
        assert found is not None
        assert found.state == "unknown"


ERP = """
[queue.producers.erp]
secret_env = "ERP_SECRET"
tenants = ["*"]
"""
ERP_SECRET = "s3cret-of-the-erp"  # noqa: S105  of this test


async def test_only_the_system_that_was_asked_answers_in_time_or_late(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from toolgate.brokers import carrier  # noqa: PLC0415  its client is an extra

    monkeypatch.setattr(carrier, "_MOST_OVERDUE", 1)
    monkeypatch.setenv("ERP_SECRET", ERP_SECRET)
    yard.change(PRODUCER, PRODUCER + ERP)
    topic = f"{yard.name}.crm"
    file = yard.root / "tools" / "yard.yaml"
    more = "".join(
        OUTSIDE.format(name=name, topic=topic, effect="irreversible", timeout=timeout)
        for name, timeout in (("crm_add", 20), ("crm_lost", 1))
    )
    file.write_text(file.read_text("utf-8") + more, "utf-8")

    def answer(call_id: str, tool: str, data: str) -> dict[str, Any]:
        output = {"status": "success", "data": data}
        head = {"version": 1, "id": call_id, "tool": tool, "tenant": "acme"}
        return {**head, "output": output, "ended_ms": 1}

    async with yard.gate() as gate, Wire(yard) as wire:
        call = asyncio.ensure_future(gate.call("crm_add", {"text": "a"}, caller=ME))
        (record,) = await wire.records(topic, 1)
        name = orjson.loads(record.value)["id"]
        # Whom we know, who may speak for the tenant, and who was not asked.
        for by, secret in (("erp", ERP_SECRET), ("crm", SECRET)):
            await wire.sign(yard.results, answer(name, "crm_add", by), secret, by=by, key=True)
        assert (await call).data == "crm"
        lost = [
            (await gate.call("crm_lost", {"text": text}, caller=ME)).call_id for text in ("b", "c")
        ]
        # So many are told of; of the first nothing is known any more.
        for by, secret in (("erp", ERP_SECRET), ("crm", SECRET)):
            for one in lost:
                await wire.sign(yard.results, answer(one, "crm_lost", by), secret, by=by, key=True)
            last = asyncio.ensure_future(gate.call("crm_add", {"text": by}, caller=ME))
            (*_, record) = await wire.records(topic, 3 if by == "erp" else 1)
            said = answer(orjson.loads(record.value)["id"], "crm_add", "")
            await wire.sign(yard.results, said, SECRET, by="crm", key=True)
            assert (await last).ok
            told = [one.getMessage() for one in caplog.records if "after its time" in one.message]
            assert len(told) == int(by == "crm")
        assert f"call {lost[1]} is answered" in told[0]


async def test_without_a_broker_such_a_tool_is_unusable_and_says_why(tmp_path: Path) -> None:
    with Yard(tmp_path, "") as yard:
        file = yard.root / "tools" / "yard.yaml"
        more = OUTSIDE.format(name="crm_add", topic="t", effect="pure", timeout=1)
        file.write_text(file.read_text("utf-8") + more, "utf-8")
        async with yard.gate() as gate:
            assert "no broker is configured" in gate.catalog.current.unusable["crm_add"]
            with pytest.raises(CallRefused):
                await gate.call("crm_add", {}, caller=ME)
