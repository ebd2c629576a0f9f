"""Servers that are away, on their way, or only tried; and what has nothing to stand for."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.sources.mcp.served import ME, PLAIN, READS, TRUSTED, Served, served, text, tool
from toolgate.errors import ProviderUnavailable
from toolgate.server.admin.tools import read_again, rows
from toolgate.settings.outward import McpServer
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.upstream import NOT_YET, Kind

pytestmark = pytest.mark.req("P3")


class Boasting(MemoryUpstream):
    """It says that it can have resources and prompts, whatever it has."""

    how: Mapping[str, Any] = {"listChanged": True}

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """All of it."""
        return {"tools": {}, "resources": self.how, "prompts": {"listChanged": True}}


def files() -> MemoryUpstream:
    found = MemoryUpstream("files", tools=[tool("read", annotations=READS), tool("write")])
    found.tools = {"read": text("hello"), "write": text("done")}
    return found


async def marks(house: Served, *, of_agent: bool = False) -> dict[str, tuple[str, str]]:
    found = await rows(house.gate, ME if of_agent else None, "mcp:files")
    return {row["name"]: (row["state"], row["reason"]) for row in found}


async def test_a_server_that_is_away_marks_its_tools_where_that_is_set() -> None:
    upstream = files()
    async with served({"files": upstream}, TRUSTED) as house:
        # The doors look into it; this house has no doors.
        house.gate.upstreams = {"files": upstream}
        await house.gate.tenancy.set_tool("mcp:files:write", enabled=False)
        assert await marks(house) == {"mcp:files:read": ("on", ""), "mcp:files:write": ("off", "")}
        upstream.go("It does not answer.")
        away = ("away", "its server is away: It does not answer.")
        assert await marks(house) == {"mcp:files:read": away, "mcp:files:write": ("off", "")}
        assert await marks(house, of_agent=True) == {"mcp:files:read": away}
        assert await house.names() == ["mcp:files:read"], "it stays listed"
        with pytest.raises(ProviderUnavailable):
            await house.gate.call("mcp:files:read", {}, caller=ME)
        upstream.come_back()
        assert (await marks(house))["mcp:files:read"] == ("on", "")


async def test_one_that_is_on_its_way_is_no_problem_and_one_that_is_away_says_what_to_do() -> None:
    directory = MemoryDirectory()
    async with served({"files": files()}, TRUSTED, directory=directory):
        pass
    later = Slow("files", tools=files().lists[Kind.TOOLS])
    async with served({"files": later}, TRUSTED, directory=directory) as house:
        assert house.problem("files") == "", "it was asked a moment ago"
        assert len(house.states()) == 2
        later.fail("it is not there.")
        await until(lambda: "it is not there. Check its url" in house.problem("files"))
    never = Slow("new", tools=[])
    async with served({"new": never}) as house:
        assert "not answered within 2 s; its tools come when it does" in house.problem("new")
        never.fail("")


class Slow(MemoryUpstream):
    """It takes its time until it is told how it ends."""

    def __init__(self, name: str, **lists: Any) -> None:
        super().__init__(name, **lists)
        self.problem = NOT_YET
        self._told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def listed(self, kind: Kind) -> Any:
        """Whenever it is told."""
        self.problem = await asyncio.shield(self._told)
        return await super().listed(kind)

    def fail(self, why: str) -> None:
        self._told.set_result(why)


@pytest.mark.parametrize("change", [Kind.RESOURCES, Kind.TEMPLATES])
async def test_nothing_stands_for_what_a_server_only_could_have(change: Kind) -> None:
    upstream = Boasting("docs", tools=[tool("look")])
    async with served({"docs": upstream}) as house:
        assert await house.names() == ["mcp:docs:look"]
        upstream.change(change, [{"uri": "a://b", "uriTemplate": "a://{b}", "name": "b"}])
        await until(lambda: "mcp:docs:read_resource" in house.states())
        upstream.change(Kind.PROMPTS, [{"name": "hi"}])
        await until(lambda: "mcp:docs:get_prompt" in house.states())
        upstream.change(change, [])
        await until(lambda: "mcp:docs:read_resource" not in house.states())


async def test_resources_that_can_be_watched_are_stood_for_before_there_is_any() -> None:
    upstream = Boasting("docs", tools=[tool("look")])
    upstream.how = {"subscribe": True}
    async with served({"docs": upstream}) as house:
        assert await house.names() == ["mcp:docs:look", "mcp:docs:read_resource"]


async def test_a_house_that_asks_none_lists_what_was_agreed_to_and_complains_of_nothing() -> None:
    directory = MemoryDirectory()
    async with served({"files": files()}, TRUSTED, directory=directory):
        pass
    upstreams = {"files": files(), "new": MemoryUpstream("new", tools=[tool("one")])}
    async with served(upstreams, TRUSTED, directory=directory, asks=False) as house:
        assert list(house.states()) == ["mcp:files:read", "mcp:files:write"]
        assert (await read_again(house.gate))["problems"] == []
        assert [row["state"] for row in house.desk.rows()] == ["not asked", "not asked"]


async def test_to_look_at_servers_agrees_to_nothing(tmp_path: Path) -> None:
    gone, odd = files(), MemoryUpstream("odd", tools=[tool("one", "Fine.\u200b")])
    gone.problem = "it is not there."
    gone.last_words = ["one", "two"]
    upstreams = {"files": gone, "new": MemoryUpstream("new", tools=[tool("one")]), "odd": odd}
    wrong = PLAIN.model_copy(update={"overlay": "wrong.yaml"})
    settings: dict[str, McpServer] = dict.fromkeys(upstreams, PLAIN)
    (tmp_path / "wrong.yaml").write_text("tools: {one: {efect: pure}}")
    upstreams["wrong"], settings["wrong"] = MemoryUpstream("wrong", tools=[tool("one")]), wrong
    async with served(upstreams, settings, asks=False, root=tmp_path) as house:
        found = {one["name"]: one for one in await house.desk.examined()}
        assert {name: (one["ok"], one["tools"]) for name, one in found.items()} == {
            "files": (False, 0),
            "new": (True, 1),
            "odd": (True, 1),
            "wrong": (True, 0),
        }
        assert found["new"]["problem"] == ""
        assert found["files"]["problem"].startswith("it is not there. Check its url")
        assert found["odd"]["held"] == ["one"]
        assert "Did you mean effect?" in found["wrong"]["problem"]
        told = await house.desk.shown("files")
        assert (told["state"], told["last_words"]) == ("away", ["one", "two"])
        assert not house.gate.tenancy.world.servers.pins
        assert all(one.is_closed for one in upstreams.values())


async def test_a_source_that_failed_says_whether_anything_is_there_of_it(tmp_path: Path) -> None:
    settings = PLAIN.model_copy(update={"overlay": "it.yaml"})
    async with served({"files": files()}, settings, root=tmp_path) as house:
        [problem] = (await read_again(house.gate))["problems"]
        assert (problem["tools"], problem["stale"]) == (0, True)
        (tmp_path / "it.yaml").write_text("tools: {reed: {effect: pure}}")
        [problem] = (await read_again(house.gate))["problems"]
        assert (problem["tools"], problem["stale"]) == (2, False)
