"""What the house hands to another system does not come back as a call of that system."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from toolgate import Toolgate
from toolgate.call import Output
from toolgate.errors import PermissionDenied

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6", "G6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
PRODUCER = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]
"""
TOOL = """\
  - name: crm_add
    provider: queue
    config: {{topic: "{topic}", producer: crm}}
    effect: irreversible
    timeout: 20
    execution: inline
    input_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""
# One that succeeded in a session is enough.
POLICY = """\
package toolgate

restrict contains "once a session" if {
	input.tool.name == "crm_add"
	input.history.session.tools.crm_add.succeeded > 0
}
"""
IN_SESSION = msgspec.structs.replace(ME, session="s1")


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, queue='work = "always"', more=PRODUCER) as place:
        file = place.root / "tools" / "yard.yaml"
        more = TOOL.format(topic=f"{place.name}.crm")
        file.write_text(file.read_text("utf-8") + more, "utf-8")
        (place.root / "policies").mkdir()
        (place.root / "policies" / "once.rego").write_text(POLICY, "utf-8")
        yield place


async def done(gate: Toolgate, wire: Wire, yard: Yard, *, waits: bool) -> Output:
    """A call that the system answers once it has sent the message back as one of its own."""
    call = asyncio.create_task(gate.call("crm_add", {"text": "a"}, caller=IN_SESSION))
    (record,) = await wire.records(f"{yard.name}.crm", 1)
    name = orjson.loads(record.value)["id"]
    # Whoever can read the one topic and write to the other needs no secret for that.
    await wire.send(yard.requests, record.value, dict(record.headers))
    if waits:
        await over(gate, [name])
    else:
        await until(lambda: yard.root.joinpath("go").exists())
    answer: dict[str, Any] = {"version": 1, "id": name, "tool": "crm_add", "tenant": "acme"}
    answer |= {"output": {"status": "success", "data": 1}, "ended_ms": 1}
    await wire.sign(yard.results, answer, SECRET, by="crm", key=True)
    return await call


async def test_a_call_that_was_handed_over_is_not_taken_for_one_that_was_sent(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        working = asyncio.create_task(done(gate, wire, yard, waits=False))
        (letter,) = await wire.records(yard.dead, 1)
        assert "its id begins with call_" in orjson.loads(letter.value)["why"]
        yard.go()
        output = await working
        assert output.ok
        assert await gate.queue.calls.find("acme", output.call_id) is None
        # What it did is on record as it was, and the next one is refused for it.
        with pytest.raises(PermissionDenied):
            await gate.call("crm_add", {"text": "b"}, caller=IN_SESSION)


async def test_without_the_look_at_its_id_it_would_stand_for_the_call_in_the_history(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.brokers import foreign  # noqa: PLC0415  its client is an extra

    monkeypatch.setattr(foreign, "_OURS", "never_")
    async with yard.gate() as gate, Wire(yard) as wire:
        assert (await done(gate, wire, yard, waits=True)).ok
        # It succeeded, and its session has it as failed.
        again = asyncio.create_task(gate.call("crm_add", {"text": "b"}, caller=IN_SESSION))
        (record,) = await wire.records(f"{yard.name}.crm", 1)
        assert orjson.loads(record.value)["args"] == {"text": "b"}
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
