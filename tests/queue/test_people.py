"""Queued calls that a person has to agree to: asked where the call came in, held to where it runs.

One node is asked and never works; the other one is the worker. Each test runs over both stores.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.blank import put_blank
from tests.house import STORE
from tests.people.asked import ANN, id_of
from tests.queue.yard import over
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED
from toolgate import Toolgate, Turn, tool
from toolgate.call import Output
from toolgate.errors import ApprovalDenied
from toolgate.ledger.approval import Approval, Standing
from toolgate.queue.message import read_output
from toolgate.settings.execution import Approvals
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings, Store

pytestmark = pytest.mark.req("P6", "S6")
ran: list[str] = []


@tool(effect="irreversible", execution="queued", requires_approval=True)
async def pay(to: str) -> str:
    """Pay somebody."""
    ran.append(to)
    return f"paid {to}"


@tool(effect="irreversible", execution="queued")
async def send(text: str) -> str:
    """Send a text."""
    ran.append(text)
    return "sent"


class Pair(NamedTuple):
    """The worker begins when it is told to."""

    node: Toolgate
    begin: Callable[[], Awaitable[Toolgate]]

    def paying(self, **more: Any) -> "asyncio.Task[Output]":
        return asyncio.create_task(self.node.call("pay", {"to": "bob"}, caller=ANN, **more))

    async def asked(self) -> Approval:
        async with asyncio.timeout(20):
            while not (found := await self.node.approvals.list("acme")):  # noqa: ASYNC110  the store tells nobody
                await asyncio.sleep(0.02)
        return found[0]

    async def queued(self) -> int:
        return (await self.node.queue.calls.depth()).waiting

    async def queues(self, number: int) -> None:
        async with asyncio.timeout(20):
            while await self.queued() != number:  # noqa: ASYNC110  the store tells nobody
                await asyncio.sleep(0.02)

    async def stands(self, approval: str) -> Standing:
        found = await self.node.approvals.find(approval, by="boss")
        assert found is not None
        return found.state


@pytest.fixture
def ttl() -> float:
    """How long what somebody says holds, in seconds."""
    return 3_600.0


@pytest.fixture(params=SHARED)
async def pair(request: pytest.FixtureRequest, tmp_path: Path, ttl: float) -> AsyncGenerator[Pair]:
    ran.clear()
    async with AsyncExitStack() as stack:
        settings = Settings(root=tmp_path, queue=Fleet(work="never"), approvals=Approvals(ttl=ttl))
        if request.param == FILE:
            put_blank(tmp_path / STORE)
        else:
            server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
            settings = settings.model_copy(update={"store": Store(url=url)})

        async def opened(settings: Settings) -> Toolgate:
            gate = await stack.enter_async_context(Toolgate.open(settings))
            gate.add(pay, send)
            return gate

        async def begin() -> Toolgate:
            return await opened(settings.model_copy(update={"queue": Fleet(work="always")}))

        yield Pair(await opened(settings), begin)


async def test_who_waits_gets_the_result_when_somebody_agrees(pair: Pair) -> None:
    await pair.begin()
    paying = pair.paying(wait_s=30)
    asked = await pair.asked()
    assert await pair.queued() == 0, "nobody has agreed to it"
    await pair.node.approvals.approve(asked.id, by="boss")
    output = await paying
    assert (output.status, output.data) == ("success", "paid bob")
    assert ran == ["bob"]
    assert await pair.stands(asked.id) is Standing.USED
    entry = await pair.node.journal.find("acme", output.call_id)
    assert entry is not None
    assert (str(entry.state), entry.approval) == ("succeeded", asked.id)


async def test_what_was_agreed_to_is_used_where_it_runs_and_once(pair: Pair) -> None:
    """Until a worker begins with it, it is only agreed to; the same once more asks once more."""
    asked = id_of(await pair.paying())
    await pair.node.approvals.approve(asked, by="boss")
    first = await pair.paying(wait_s=0)
    assert first.status == "queued"
    assert await pair.stands(asked) is Standing.APPROVED
    second = pair.paying(wait_s=30)
    await pair.queues(2)
    await pair.begin()
    # Both were let through by one word, and it is good for one of them.
    told = await second
    [found] = await over(pair.node, [first.call_id])
    assert ran == ["bob"]
    assert await pair.stands(asked) is Standing.USED
    assert sorted([told.status, read_output(found.output).status]) == [
        "pending_approval",
        "success",
    ]


async def test_what_somebody_says_no_to_is_never_queued(pair: Pair) -> None:
    paying = pair.paying(wait_s=30)
    asked = await pair.asked()
    await pair.node.approvals.deny(asked.id, by="boss", reason="too much")
    with pytest.raises(ApprovalDenied, match="too much"):
        await paying
    with pytest.raises(ApprovalDenied):
        await pair.paying()
    assert await pair.queued() == 0


async def test_what_nobody_decides_in_time_is_pending_and_not_queued(pair: Pair) -> None:
    output = await pair.paying(wait_s=0.1)
    assert output.status == "pending_approval"
    assert await pair.queued() == 0


@pytest.mark.parametrize("ttl", [3.0])
async def test_what_was_agreed_to_too_long_ago_is_asked_about_anew(pair: Pair) -> None:
    """It expired in the queue: nothing ran, and whoever waits is told whom to ask."""
    asked = id_of(await pair.paying())
    await pair.node.approvals.approve(asked, by="boss")
    waiting = pair.paying(wait_s=30)
    await pair.queues(1)
    while await pair.stands(asked) is not Standing.EXPIRED:  # noqa: ASYNC110  nor here
        await asyncio.sleep(0.05)
    await pair.begin()
    output = await waiting
    assert id_of(output) != asked
    assert ran == []


async def test_what_is_not_allowed_any_more_does_not_run_though_somebody_agreed(
    pair: Pair,
) -> None:
    asked = id_of(await pair.paying())
    await pair.node.approvals.approve(asked, by="boss")
    waiting = pair.paying(wait_s=30)
    await pair.queues(1)
    await pair.node.tenancy.set_tenant_tool("acme", "pay", enabled=False)
    await pair.begin()
    output = await waiting
    assert output.error is not None
    assert output.error.code in {"permission_denied", "tool_not_found"}
    assert ran == []
    assert await pair.stands(asked) is Standing.APPROVED


async def test_newer_messages_hold_up_a_call_before_it_is_queued(pair: Pair) -> None:
    """Who could tell of them stays here: a worker has nobody to ask."""
    turn = Turn(group="t-1", has_pending_messages=lambda: True)
    output = await pair.node.call("send", {"text": "hi"}, caller=ANN, turn=turn)
    assert output.status == "superseded"
    assert await pair.queued() == 0
    await pair.begin()
    turn = Turn(group="t-1", has_pending_messages=lambda: False)
    assert (await pair.node.call("send", {"text": "hi"}, caller=ANN, turn=turn)).data == "sent"
