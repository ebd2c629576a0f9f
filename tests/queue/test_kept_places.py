"""One tenant's calls that take long hold all places of a worker, and none of those kept beside."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.stand import KINDS, LONG, Stand, item, names, stood
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from toolgate import Caller, Toolgate
from toolgate.worker import worker

pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
OTHER = Caller(tenant="globex", agent="billing")
PLACES = 16
KEPT = PLACES // 8
SETTINGS = f'work = "always"\nconcurrency = {PLACES}\ndrain = 0'
PRODUCER = '[queue.producers.crm]\nsecret_env = "CRM_SECRET"\ntenants = ["*"]'


@pytest.fixture(params=KINDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stand]:
    """An empty queue."""
    async with stood(request, tmp_path) as found:
        yield found


@pytest.fixture(params=["store", "kafka"])
def yard(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    address = ""
    if request.param == "kafka":
        needs("aiokafka", "an extra")
        kafka: Kafka = request.getfixturevalue("kafka")
        address = kafka.address
    with Yard(tmp_path, address, queue=SETTINGS, more=PRODUCER) as place:
        yield place


async def test_some_tenants_can_be_left_out(stand: Stand) -> None:
    queue, shipping = stand.queue, stand.shipping
    for tenant in ("acme", "globex", "umbrella"):
        for number in range(3):
            await queue.put(item(f"{tenant[0]}{number}", tenant))
    assert names(await queue.take(2, LONG, but={"acme", "umbrella"})) == ["g0", "g1"]
    assert list(await queue.take(2, LONG, but={"acme", "globex", "umbrella"})) == []
    assert sorted(names(await queue.take(2, LONG, but={"acme"}))) == ["g2", "u0"]
    assert len(await shipping.send(20, window=20, again=LONG)) == 5
    assert list(await queue.take_sent(2, LONG, but={"acme", "umbrella"})) == []
    # Nobody has to take turns with who is left.
    assert names(await queue.take_sent(1, LONG, but={"acme"})) == ["u1"]
    assert names(await queue.take_sent(9, LONG, but={"umbrella"})) == ["a0", "a1", "a2"]


async def held(gate: Toolgate, caller: Caller, mark: str) -> list[str]:
    """More of them than there are places, none of which comes to an end."""
    calls = [
        gate.call("watch", {"text": f"{mark}{one}"}, caller=caller, wait_s=0)
        for one in range(2 * PLACES)
    ]
    return [one.call_id for one in await asyncio.gather(*calls)]


def began(yard: Yard, mark: str) -> int:
    return sum(one.startswith(f"began-{mark}") for one in yard.marks())


async def test_a_lone_call_runs_beside_those_that_hold_all_places(yard: Yard) -> None:
    async with yard.gate() as gate:
        await held(gate, ME, "a")
        await until(lambda: began(yard, "a") == PLACES)
        for number in range(3):
            assert (await gate.call("look", {"text": f"b{number}"}, caller=OTHER)).ok
        # What is kept is for all who run little, and not for one of them.
        await held(gate, OTHER, "c")
        await until(lambda: began(yard, "c") == 1)
        third = Caller(tenant="umbrella", agent="billing")
        assert (await gate.call("look", {"text": "d"}, caller=third)).ok
        assert (began(yard, "a"), began(yard, "c")) == (PLACES, 1)
        yard.go()


async def test_without_places_that_are_kept_it_would_wait_for_their_end(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "KEPT", 2 * PLACES)
    async with yard.gate() as gate:
        await held(gate, ME, "a")
        await until(lambda: began(yard, "a") == PLACES)
        output = await gate.call("look", {"text": "b"}, caller=OTHER, wait_s=2)
        assert output.status == "queued"
        yard.go()


@pytest.mark.parametrize("yard", ["kafka"], indirect=True)
async def test_so_does_one_that_another_system_sent_behind_them(yard: Yard) -> None:
    def asked(tenant: str, tool: str, name: str) -> dict[str, Any]:
        caller = {"tenant": tenant, "agent": "billing"}
        head = {"version": 1, "id": f"crm_{name:0>8}", "caller": caller}
        return {**head, "tool": tool, "args": {"text": name}}

    async with yard.gate() as gate, Wire(yard) as wire:
        for number in range(2 * PLACES):
            message = asked("acme", "watch", f"a{number}")
            await wire.sign(yard.requests, message, SECRET, by="crm", partition=0)
        await until(lambda: began(yard, "a") == PLACES)
        await wire.sign(yard.requests, asked("globex", "look", "b"), SECRET, by="crm", partition=0)
        await over(gate, ["crm_0000000b"], seconds=10)
        assert began(yard, "a") == PLACES
        yard.go()
