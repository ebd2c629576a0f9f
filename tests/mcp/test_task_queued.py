"""A task whose call is queued lasts as long as that call, with its node and without."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.mcp.house import House, opened
from tests.mcp.tasking import Desk
from toolgate import clock, tool
from toolgate.server.mcp import awaited, board, orphans, post, task
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Mcp, Settings

pytestmark = pytest.mark.req("V1", "D2", "P6")
HOUR_MS = 3_600_000
# A client that waits for a moment only.
SOON = {"toolgate/waitSeconds": 0.05}


class Yard:
    """A node that works at nothing, and a worker; their tool waits until it is let go."""

    def __init__(self, here: House, there: House) -> None:
        self.here, self.there = Desk(here), Desk(there)
        self.go, self.ran = asyncio.Event(), list[str]()

        @tool(effect="irreversible", execution="queued")
        async def post_it(to: str) -> dict[str, str]:
            """Post it, slowly."""
            self.ran.append(to)
            await self.go.wait()
            return {"posted": to}

        self.tool = post_it
        for house in (here, there):
            house.gate.add(post_it)

    async def silent(self, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """The node says nothing more, once the board knows which call it is."""
        async with asyncio.timeout(20):
            while "toolgate/callId" not in (await self.there.get(made))["_meta"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        monkeypatch.setattr(board, "GONE_NS", -1)
        monkeypatch.setattr(board.Board, "_flush", _nothing)

    async def is_gone(self, made: Any) -> bool:
        _, found = await self.there.raw("tasks/get", {"taskId": made["taskId"]})
        return "error" in found and "There is no such task" in found["error"]["message"]


async def _nothing(*_: Any) -> None: ...


@asynccontextmanager
async def yard(folder: Path) -> AsyncGenerator[Yard]:
    mcp = Mcp(task_after=0.01)
    nodes = [Settings(root=folder, mcp=mcp, queue=Fleet(work=one)) for one in ("never", "always")]
    async with (
        opened(folder, settings=nodes[1]) as there,
        opened(folder, settings=nodes[0]) as here,
    ):
        await there.gate.tenancy.refresh()
        same = House(there.gate, there.url, here.ann, here.plain, here.other)
        yield Yard(here, same)


class Later:
    """The time of day, so many hours on, for whoever looks at how old something is."""

    def __init__(self, hours: float) -> None:
        self._ahead_ns = round(hours * 3_600e9)

    def unix_ns(self) -> int:
        return clock.unix_ns() + self._ahead_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(clock, name)


def later(hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (board, task, orphans, post):
        monkeypatch.setattr(module, "clock", Later(hours))


@pytest.fixture
def boards(monkeypatch: pytest.MonkeyPatch) -> list[board.Board]:
    """Those of all nodes, in the order in which they were opened."""
    made: list[board.Board] = []
    begin = board.Board.__init__

    def begun(one: board.Board, *given: Any) -> None:
        begin(one, *given)
        made.append(one)

    monkeypatch.setattr(board.Board, "__init__", begun)
    return made


async def swept(one: Any) -> None:
    """As its node does every two minutes."""
    letters = one._post
    assert letters.shelf is not None
    letters._swept_ns -= 10**12
    await letters._sweep(letters.shelf)


async def test_it_lasts_as_long_as_its_call_however_long_its_node_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boards: list[board.Board]
) -> None:
    async with yard(tmp_path) as here:
        made = await here.here.call("post_it", {"to": "bob"})
        await here.silent(made, monkeypatch)
        later(3, monkeypatch)
        found = await here.there.get(made)
        assert found["status"] == "working"
        # It says so: an hour from now at the least.
        assert found["ttlMs"] >= 4 * HOUR_MS
        await swept(boards[0])
        assert (await here.there.get(made))["status"] == "working"
        # Calls end by the store's own clock.
        later(0, monkeypatch)
        here.go.set()
        over = await here.there.over(made)
        assert over["result"]["structuredContent"] == {"posted": "bob"}
        assert here.ran == ["bob"]


async def test_an_hour_after_the_end_of_its_call_it_goes_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boards: list[board.Board]
) -> None:
    async with yard(tmp_path) as here:
        made = await here.here.call("post_it", {"to": "bob"})
        await here.silent(made, monkeypatch)
        here.go.set()
        over = await here.there.over(made)
        assert HOUR_MS <= over["ttlMs"] < HOUR_MS + 60_000
        later(0.9, monkeypatch)
        assert (await here.there.get(made))["status"] == "completed"
        later(1.1, monkeypatch)
        assert await here.is_gone(made)
        await swept(boards[0])
        later(0, monkeypatch)
        assert await here.is_gone(made), "the sweep has left it"


async def test_if_nobody_asked_for_its_call_it_would_be_gone_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with yard(tmp_path) as here:
        made = await here.here.call("post_it", {"to": "bob"})
        await here.silent(made, monkeypatch)
        monkeypatch.setattr(orphans.Orphans, "told", _nothing)
        later(3, monkeypatch)
        assert await here.is_gone(made)
        here.go.set()


async def test_it_does_not_end_before_a_call_that_nobody_waits_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited, "EVERY", 0.02)
    waiting: list[str] = []
    result = awaited.Awaited.result

    async def heard(one: awaited.Awaited, call_id: str) -> dict[str, Any]:
        waiting.append(call_id)
        return await result(one, call_id)

    monkeypatch.setattr(awaited.Awaited, "result", heard)
    async with yard(tmp_path) as here:
        made = await here.here.call("post_it", {"to": "bob"}, meta=SOON)
        await until(lambda: bool(waiting))
        found = await here.here.get(made)
        assert (found["status"], found["statusMessage"]) == ("working", f"queued as {waiting[0]}")
        here.go.set()
        over = await here.here.over(made)
        assert over["result"]["structuredContent"] == {"posted": "bob"}
        assert over["_meta"]["toolgate/callId"] == waiting[0]


async def test_its_node_closes_and_the_next_one_tells_how_its_call_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with yard(tmp_path) as here:
        settings = Settings(root=tmp_path, mcp=Mcp(task_after=0.01), queue=Fleet(work="never"))
        async with opened(tmp_path, settings=settings) as closing:
            closing.gate.add(here.tool)
            desk = Desk(closing)
            made = await desk.call("post_it", {"to": "bob"}, meta=SOON)
            await until(lambda: here.ran == ["bob"])
        monkeypatch.setattr(board, "GONE_NS", -1)
        theirs = Desk(here.there.house._replace(ann=closing.ann))
        await here.there.house.gate.tenancy.refresh()
        assert (await theirs.get(made))["status"] == "working"
        here.go.set()
        assert (await theirs.over(made))["result"]["structuredContent"] == {"posted": "bob"}
