"""Two nodes at one PostgreSQL: a question asked here and decided there, events sent by either."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.house import until
from tests.people.receiver import SECRET, Receiver, receiving
from tests.servers.postgres import Postgres
from tests.store.lent import lent_url
from toolgate import Caller, Toolgate, Turn, tool
from toolgate.call import Output
from toolgate.settings.execution import Events
from toolgate.settings.settings import Settings, Store
from toolgate.tenancy import present

pytestmark = pytest.mark.req("S6", "S7")
ANN = Caller(tenant="acme", agent="billing", user="ann")
VARIABLE = "PEOPLE_NODES_SECRET"
ran: list[Any] = []


@tool(effect="irreversible", requires_approval=True)
async def pay(to: str) -> str:
    """Pay."""
    ran.append(to)
    return to


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send."""
    return to


class Nodes(NamedTuple):
    one: Toolgate
    two: Toolgate
    receiver: Receiver


@pytest.fixture
async def nodes(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Nodes]:
    ran.clear()
    monkeypatch.setenv(VARIABLE, SECRET)
    # A store that takes long is refused to be waited for; here it is the machine that is slow.
    monkeypatch.setattr(present, "FRESHEN_SECONDS", 30.0)
    async with lent_url(postgres) as url, receiving() as receiver:
        settings = Settings(
            root=tmp_path,
            store=Store(url=url),
            events=Events(url=receiver.url, secret_env=VARIABLE),
        )
        async with Toolgate.open(settings) as one, Toolgate.open(settings) as two:
            for gate in (one, two):
                gate.add(pay, send)
            yield Nodes(one, two, receiver)


async def test_what_is_asked_at_one_node_and_decided_at_the_other_runs_once(nodes: Nodes) -> None:
    turn = Turn(group="t1")
    calls = [
        asyncio.create_task(gate.call("pay", {"to": "bob"}, caller=ANN, turn=turn, wait_s=20))
        for gate in (nodes.one, nodes.two)
    ]
    while not (waiting := await nodes.two.approvals.list("acme")):  # noqa: ASYNC110  another node's
        await asyncio.sleep(0.02)
    [asked] = waiting
    words = await asyncio.gather(
        *(gate.approvals.approve(asked.id, by="boss") for gate in (nodes.one, nodes.two)),
        return_exceptions=True,
    )
    assert sum(isinstance(word, Exception) for word in words) == 1
    outputs: list[Output] = await asyncio.gather(*calls)
    assert [one.data for one in outputs] == ["bob", "bob"]
    assert ran == ["bob"]


async def test_each_event_is_sent_by_one_node_and_in_order(nodes: Nodes) -> None:
    outputs = await asyncio.gather(
        *(
            gate.call("send", {"to": str(number)}, caller=ANN)
            for number in range(10)
            for gate in (nodes.one, nodes.two)
        )
    )
    await until(lambda: len(nodes.receiver.got) >= 40)
    assert len({got.id for got in nodes.receiver.got}) == len(nodes.receiver.got) == 40
    for output in outputs:
        told = [got.body for got in nodes.receiver.got if got.body["call_id"] == output.call_id]
        assert [one["kind"] for one in told] == ["side_effect.started", "side_effect.completed"]
