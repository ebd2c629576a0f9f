"""How a task stands at a node that does not run it, also when the one that did is gone."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.house import STORE, until
from tests.mcp.house import House, opened
from tests.mcp.tasking import Desk
from tests.mcp.test_tasks import Slow, answer
from toolgate import Call, tool
from toolgate.server.mcp import board, post
from toolgate.server.mcp.task import Task
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Mcp, Settings

pytestmark = pytest.mark.req("V1", "D2")


@pytest.fixture
async def desks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Desk, Desk, Slow]]:
    """Two houses at one file, as two nodes; keys of the first open the second."""
    monkeypatch.setattr(post, "EVERY", 0.02)
    slow = Slow()
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(opened(tmp_path, task_after=0.01))
        there = await stack.enter_async_context(opened(tmp_path, task_after=0.01))
        slow.added_to(here)
        await there.gate.tenancy.refresh()
        same = House(there.gate, there.url, here.ann, here.plain, here.other)
        yield Desk(here).that_is_asked(), Desk(same).that_is_asked(), slow


async def test_a_task_is_told_of_answered_and_over_at_another_node(
    desks: tuple[Desk, Desk, Slow],
) -> None:
    here, there, slow = desks
    made = await here.call("greet")
    assert (await there.get(made))["status"] == "working"
    slow.go.set()
    asked = await there.until_it_is(made, "input_required")
    first, second = asked["inputRequests"]
    await there.update(made, {first: answer("Ann")})
    left = await there.get(made)
    assert list(left["inputRequests"]) == [second]
    await there.update(made, {second: answer("Bob"), "nobody": answer("x")})
    over = await there.over(made)
    assert over["result"]["content"][0]["text"] == "Ann and Bob"
    assert slow.ran.count("greeted") == 1
    # At another key's request it is not there, at either node.
    for desk in (here, there):
        _, missing = await desk.raw("tasks/get", {"taskId": made["taskId"]}, key=here.house.plain)
        assert missing["error"]["code"] == -32602


async def test_a_task_whose_node_says_nothing_any_more_has_failed_and_says_what_to_do(
    desks: tuple[Desk, Desk, Slow], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, slow = desks
    made = await here.call("send", {"to": "bob"})
    await until(lambda: slow.ran == ["began"])
    monkeypatch.setattr(board, "GONE_NS", -1)
    found = await there.get(made)
    assert found["status"] == "failed"
    assert "toolgate/idempotencyKey" in found["error"]["message"]
    monkeypatch.undo()
    slow.go.set()
    assert (await here.over(made))["result"]["structuredContent"] == {"sent": "bob"}
    assert (await there.over(made))["status"] == "completed"


async def test_a_task_whose_call_a_worker_has_goes_on_without_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node that made it works at nothing, and falls silent; the other one is the worker."""
    go, ran = asyncio.Event(), list[str]()

    @tool(effect="irreversible", execution="queued")
    async def post_it(to: str) -> dict[str, str]:
        """Post it, slowly."""
        ran.append(to)
        await go.wait()
        return {"posted": to}

    mcp = Mcp(task_after=0.01)
    settings = Settings(root=tmp_path, mcp=mcp, queue=Fleet(work="never"))
    works = Settings(root=tmp_path, mcp=mcp, queue=Fleet(work="always"))
    async with (
        opened(tmp_path, settings=settings) as here,
        opened(tmp_path, settings=works) as there,
    ):
        for house in (here, there):
            house.gate.add(post_it)
        await there.gate.tenancy.refresh()
        desk = Desk(here)
        other = Desk(House(there.gate, there.url, here.ann, here.plain, here.other))
        made = await desk.call("post_it", {"to": "bob"})
        await until(lambda: ran == ["bob"])
        # What is on the board by now says which call it is.
        while "toolgate/callId" not in (await other.get(made))["_meta"]:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.02)
        monkeypatch.setattr(board, "GONE_NS", -1)
        monkeypatch.setattr(board.Board, "_flush", _said_nothing)
        found = await other.get(made)
        assert (found["status"], "is gone" in found["statusMessage"]) == ("working", True)
        go.set()
        over = await other.over(made)
        assert over["status"] == "completed"
        assert over["result"]["structuredContent"] == {"posted": "bob"}
        assert ran == ["bob"]


async def _said_nothing(*_: Any) -> None: ...


async def test_what_a_node_did_for_a_task_is_told_by_others_once_it_has_closed(
    tmp_path: Path,
) -> None:
    slow = Slow()
    async with opened(tmp_path, task_after=300) as there:
        async with opened(
            tmp_path,
            task_after=0.01,
        ) as here:
            slow.added_to(here)
            desk = Desk(here)
            made = await desk.call("send", {"to": "bob"})
            asyncio.get_running_loop().call_later(0.2, slow.go.set)
        same = Desk(House(there.gate, there.url, here.ann, here.plain, here.other))
        await there.gate.tenancy.refresh()
        assert (await same.over(made))["result"]["structuredContent"] == {"sent": "bob"}


SECRET: dict[str, Any] = {"type": "string", "format": "password"}
CANARIES = ("canary-given", "canary-made", "canary-user", "canary-said")


@pytest.mark.req("O2")
@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_what_the_board_keeps_of_a_task_holds_no_secret(
    desks: tuple[Desk, Desk, Slow],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_guarded: bool,
) -> None:
    here, there, slow = desks
    if not is_guarded:
        monkeypatch.setattr(Task, "noted", Task.shown)

    @tool(
        effect="irreversible",
        input_schema={"type": "object", "properties": {"password": SECRET}},
        output_schema={"type": "object", "properties": {"token": {"secret": True}}},
    )
    async def login(call: Call, password: str) -> dict[str, str]:
        call.progress(1, 2, f"https://ann:canary-said@host with {password}")
        await slow.go.wait()
        return {"token": "canary-made", "said": f"{password} https://canary-user@host", "to": "ann"}

    here.house.gate.add(login)
    made = await here.call("login", {"password": "canary-given"})
    slow.go.set()
    # Whose it is has it as it was given, where it ran; elsewhere it has been kept.
    mine = await here.over(made)
    assert mine["result"]["structuredContent"]["token"] == CANARIES[1]
    theirs = await there.over(made)
    assert theirs["result"]["structuredContent"]["to"] == "ann"
    assert (str(theirs).count("canary-") == 0) is is_guarded
    with closing(sqlite3.connect(tmp_path / STORE)) as connection:
        kept = str(connection.execute("SELECT * FROM shelf").fetchall())
    assert made["taskId"] in kept
    found = {one for one in CANARIES if one in kept}
    assert not found if is_guarded else {"canary-given", "canary-made", "canary-user"} <= found
