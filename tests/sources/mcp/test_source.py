"""An upstream's tools in the catalog: names, effects, pins, and what happens when it is away."""

from typing import Any

import pytest

from tests.house import until
from tests.sources.mcp.served import ME, PLAIN, READS, TRUSTED, served, text, tool
from tests.sources.mcp.test_suspicion import ODD
from toolgate.errors import InvalidRequest, ProviderUnavailable, ToolNotFound, UnsupportedProvider
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp import naming
from toolgate.spec.effect import Effect
from toolgate.spec.export import export
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("C2", "P3")


def nothing_odd(*_given: object) -> list[str]:
    return []


def files(*more: dict[str, Any]) -> MemoryUpstream:
    found = MemoryUpstream("files", tools=[tool("read", annotations=READS), tool("write"), *more])
    found.tools = {"read": text("hello"), "write": text("done")}
    return found


async def test_a_servers_tools_are_called_by_their_names_and_by_a_short_one() -> None:
    async with served({"files": files()}, TRUSTED) as house:
        assert await house.names() == ["mcp:files:read", "mcp:files:write"]
        assert (await house.gate.call("mcp:files:read", {}, caller=ME)).data == "hello"
        output = await house.gate.call("read", {"text": "x"}, caller=ME)
        assert output.data == "hello"
        entries = await house.gate.journal.entries("acme")
        assert {entry.tool for entry in entries} == {"mcp:files:read"}


async def test_a_short_name_that_two_tools_could_have_is_nobodys() -> None:
    other = MemoryUpstream("web", tools=[tool("Read", annotations=READS)])
    async with served({"files": files(), "web": other}, TRUSTED) as house:
        with pytest.raises(ToolNotFound):
            await house.gate.call("read", {}, caller=ME)
        assert (await house.gate.call("mcp:files:read", {}, caller=ME)).ok


@pytest.mark.parametrize("when_down", ["hide", "mark"])
async def test_a_tool_that_waits_or_is_away_keeps_its_short_name(when_down: str) -> None:
    settings = TRUSTED.model_copy(update={"when_down": when_down})
    one, other = files(), MemoryUpstream("web", tools=[tool("read", annotations=READS)])
    async with served({"files": one, "web": other}, settings) as house:
        if when_down == "hide":
            one.go()
        else:
            one.change(Kind.TOOLS, [tool("read", "Another."), tool("write")])
        await until(lambda: bool(house.states()["mcp:files:read"]))
        with pytest.raises(ToolNotFound):
            await house.gate.call("read", {}, caller=ME)
        assert "write" in house.gate.catalog.current.aliases or when_down == "hide"


async def test_a_short_name_leads_to_nothing_that_is_hidden() -> None:
    async with served({"files": files()}, TRUSTED) as house:
        assert (await house.gate.call("read", {}, caller=ME)).ok
        await house.gate.tenancy.set_tool("mcp:files:read", enabled=False)
        with pytest.raises(ToolNotFound):
            await house.gate.call("read", {}, caller=ME)


async def test_a_tool_of_ours_keeps_its_name() -> None:
    def read() -> str:
        """Ours."""
        return "ours"

    async with served({"files": files()}, TRUSTED, read) as house:
        assert (await house.gate.call("read", {}, caller=ME)).data == "ours"


@pytest.mark.parametrize(
    ("hints", "trust", "effect", "asks"),
    [
        ({}, "none", Effect.IRREVERSIBLE, True),
        (READS, "none", Effect.IRREVERSIBLE, True),
        ({}, "hints", Effect.IRREVERSIBLE, True),
        (READS, "hints", Effect.PURE, False),
        ({"idempotentHint": True}, "hints", Effect.IDEMPOTENT, True),
        ({"destructiveHint": False}, "hints", Effect.IRREVERSIBLE, False),
        ({"readOnlyHint": "yes"}, "hints", Effect.IRREVERSIBLE, True),
    ],
)
async def test_hints_are_believed_where_the_operator_says_so(
    hints: dict[str, Any], trust: Any, effect: Effect, asks: Any
) -> None:
    upstream = MemoryUpstream("it", tools=[tool("one", annotations=hints)])
    settings = McpServer(url="https://there.example", trust=trust)
    async with served({"it": upstream}, settings) as house:
        spec = house.gate.catalog.current.specs["mcp:it:one"]
        assert (spec.effect, spec.requires_confirmation) == (effect, asks)


async def test_a_list_passes_on_the_title_and_nothing_that_nobody_agreed_to() -> None:
    """Icons and `_meta` are not pinned: they may change at any time, so none of them is listed."""
    upstream = files()
    beside: Any = {
        "icons": [{"src": "https://x.example/a.png"}],
        "_meta": {"fastmcp": {"tags": []}},
    }
    said = tool("read", annotations=READS) | {"title": "Read it"}
    upstream.change(Kind.TOOLS, [said | beside])
    async with served({"files": upstream}, TRUSTED) as house:
        [listed] = export(await house.gate.discover(ME), "mcp")
        assert (listed["title"], beside.keys() & listed.keys()) == ("Read it", set())
        upstream.change(Kind.TOOLS, [said | {"_meta": {"other": 1}}, tool("write")])
        await until(lambda: "mcp:files:write" in house.gate.catalog.current.unusable)
        assert await house.names() == ["mcp:files:read"], "it does not wait for anybody"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "It does something else."},
        {"inputSchema": {"type": "object", "properties": {"text": {"type": "integer"}}}},
        {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
        {"outputSchema": {"type": "object"}},
        {"title": "Other"},
        {
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "default": "x"}},
            }
        },
    ],
    ids=["description", "schema", "annotation", "output", "title", "default"],
)
async def test_a_definition_that_changes_waits_until_it_is_agreed_to(change: Any) -> None:
    upstream = files()
    async with served({"files": upstream}, TRUSTED) as house:
        changed = tool("read", annotations=READS) | change
        upstream.change(Kind.TOOLS, [changed, tool("write")])
        await until(lambda: "mcp:files:read" in house.gate.catalog.current.unusable)
        assert await house.names() == ["mcp:files:write"]
        with pytest.raises(ToolNotFound):
            await house.gate.call("mcp:files:read", {}, caller=ME)
        [waits] = await house.desk.waiting("files")
        assert waits["tool"] == "read"
        assert any(line.startswith("+") for line in waits["lines"])
        await house.approve("files")
        assert "mcp:files:read" in await house.names()
        [record, *_] = await house.gate.tenancy.audit()
        assert (record.change, record.who, record.why) == ("pin_tools", "eva", "looked at it")


async def test_another_order_changes_nothing() -> None:
    one = tool("read", inputSchema={"type": "object", "required": ["a", "b"], "properties": {}})
    upstream = MemoryUpstream("files", tools=[one, tool("write")])
    async with served({"files": upstream}) as house:
        schema: dict[str, Any] = {"properties": {}, "required": ["b", "a"], "type": "object"}
        turned = dict(reversed(list((one | {"inputSchema": schema}).items())))
        upstream.change(Kind.TOOLS, [tool("write"), turned, tool("new")])
        await until(lambda: "mcp:files:new" in house.states())
        assert house.states()["mcp:files:read"] == ""


async def test_a_new_tool_waits_and_one_that_is_gone_is_gone() -> None:
    upstream = files()
    async with served({"files": upstream}, TRUSTED) as house:
        upstream.change(Kind.TOOLS, [tool("read", annotations=READS), tool("more")])
        await until(lambda: "mcp:files:more" in house.states())
        assert await house.names() == ["mcp:files:read"]
        assert "mcp:files:write" not in house.states()
        assert "waits for an operator" in house.problem("files")
        await house.approve("files", "more")
        assert await house.names() == ["mcp:files:more", "mcp:files:read"]


async def test_without_pins_a_change_holds_at_once_unless_it_is_suspicious() -> None:
    upstream = files()
    settings = PLAIN.model_copy(update={"pin": False})
    async with served({"files": upstream}, settings) as house:
        odd = tool("odd", "Fine.\u200b")
        upstream.change(Kind.TOOLS, [tool("read", "Other."), odd])
        await until(lambda: "mcp:files:odd" in house.states())
        assert await house.names() == ["mcp:files:read"]


async def test_only_what_was_looked_at_is_agreed_to() -> None:
    upstream = files()
    async with served({"files": upstream}, TRUSTED) as house:
        upstream.change(Kind.TOOLS, [tool("write", "First.")])
        await until(lambda: bool(house.states()["mcp:files:write"]))
        [waits] = await house.desk.waiting("files")
        upstream.change(Kind.TOOLS, [tool("write", "Second.")])
        first = waits["fingerprint"]
        held = house.servers.source("files")
        await until(lambda: held.judged.held["write"].pin.fingerprint != first)
        by = house.gate.tenancy.by("eva")
        with pytest.raises(InvalidRequest, match="has changed since"):
            await house.desk.approve(by, "files", {"write": first})


async def test_a_server_that_was_never_reached_stops_no_start_and_comes_later() -> None:
    upstream = files()
    upstream.problem = "It does not answer."
    async with served({"files": upstream}, TRUSTED) as house:
        assert house.states() == {}
        assert "does not answer" in house.problem("files")
        upstream.come_back()
        await until(lambda: "mcp:files:read" in house.states())
        assert (await house.gate.call("read", {}, caller=ME)).data == "hello"


async def test_what_was_agreed_to_is_there_while_its_server_is_away() -> None:
    directory = MemoryDirectory()
    async with served({"files": files()}, TRUSTED, directory=directory):
        pass
    away = files()
    away.problem = "It does not answer."
    async with served({"files": away}, TRUSTED, directory=directory) as house:
        assert await house.names() == ["mcp:files:read", "mcp:files:write"]
        with pytest.raises(ProviderUnavailable):
            await house.gate.call("mcp:files:read", {}, caller=ME)
        away.come_back()
        await until(lambda: house.servers.source("files").member.is_checked)
        assert (await house.gate.call("mcp:files:read", {}, caller=ME)).ok


async def test_a_tool_that_changed_while_the_house_was_closed_does_not_run() -> None:
    directory = MemoryDirectory()
    async with served({"files": files()}, TRUSTED, directory=directory):
        pass
    other = files()
    other.lists[Kind.TOOLS][0]["description"] = "Another one."
    async with served({"files": other}, TRUSTED, directory=directory) as house:
        # Agreed to, and so there at once; but it is compared before anything is sent.
        with pytest.raises((ToolNotFound, UnsupportedProvider)):
            await house.gate.call("mcp:files:read", {}, caller=ME)
        assert other.heard == []


async def test_a_server_that_is_away_hides_its_tools_where_that_is_set() -> None:
    upstream = files()
    async with served({"files": upstream}, TRUSTED.model_copy(update={"when_down": "hide"})) as on:
        assert "mcp:files:read" in await on.names()
        upstream.go()
        await until(lambda: "mcp:files:read" in on.gate.catalog.current.unusable)
        assert await on.names() == []
        upstream.come_back()
        await until(lambda: "mcp:files:read" not in on.gate.catalog.current.unusable)


async def test_one_servers_trouble_leaves_the_others_alone() -> None:
    other = MemoryUpstream("web", tools=[tool("search", annotations=READS)])
    other.tools = {"search": text("found")}
    upstream = files()
    async with served({"files": upstream, "web": other}, TRUSTED) as house:
        upstream.go("It is gone.")
        await until(lambda: "gone" in house.problem("files"))
        assert house.problem("web") == ""
        assert (await house.gate.call("search", {}, caller=ME)).data == "found"


async def test_a_schema_that_cannot_be_taken_leaves_only_its_tool_out() -> None:
    bad = tool("bad", inputSchema={"type": "object", "properties": {"a": {"$ref": "http://x/y"}}})
    async with served({"files": files(bad)}) as house:
        assert await house.names() == ["mcp:files:read", "mcp:files:write"]
        assert "bad is left out" in house.problem("files")


async def test_schemas_arrive_whole() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"place": {"$anchor": "place", "type": "object"}},
        "properties": {"at": {"$ref": "#place"}, "two": {"$ref": "#/$defs/place"}},
    }
    async with served({"files": files(tool("go", inputSchema=schema))}) as house:
        assert house.gate.catalog.current.specs["mcp:files:go"].input_schema.value() == schema


async def test_without_a_prefix_tools_have_their_own_names_and_nobody_elses() -> None:
    def write() -> str:
        """Ours."""
        return ""

    settings = TRUSTED.model_copy(update={"prefix": ""})
    borrowed = tool("mcp:bank:pay"), tool("mcp__bank__pay")
    async with served({"files": files(*borrowed)}, settings, write) as house:
        assert await house.names() == ["read", "write"]
        assert "another tool 'write'" in house.problem("files")
        assert "belongs to another server" in house.problem("files")
        assert "as models know the tools of MCP servers" in house.problem("files")


@pytest.mark.parametrize("name", ["r\u0435ad", "wr1te", "wr\u0131te"])
async def test_a_name_that_looks_like_another_waits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def both() -> dict[str, MemoryUpstream]:
        other = MemoryUpstream("web", tools=[tool(name), tool("search")])
        return {"files": files(), "web": other}

    async with served(both()) as house:
        assert await house.names() == ["mcp:files:read", "mcp:files:write", "mcp:web:search"]
        assert "suspicious" in house.problem("web") or "waits" in house.problem("web")
    # The guard-off control.
    monkeypatch.setattr(naming, "look_alikes", nothing_odd)
    async with served(both()) as house:
        assert naming.ours("mcp:web:", name) in await house.names()


@pytest.mark.parametrize("name", ["WRITE", "Write", "send-mail", "Send.Mail"])
async def test_without_a_prefix_another_spelling_of_a_name_waits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> str:
        """Ours."""
        return ""

    def both() -> dict[str, MemoryUpstream]:
        mail = MemoryUpstream("mail", tools=[tool("send_mail")])
        return {"mail": mail, "web": MemoryUpstream("web", tools=[tool(name), tool("search")])}

    settings = TRUSTED.model_copy(update={"prefix": ""})
    async with served(both(), settings, write) as house:
        assert await house.names() == ["search", "send_mail", "write"]
        assert "another spelling of" in house.states()[name]
        with pytest.raises(ToolNotFound):
            await house.gate.call(name, {}, caller=ME)
    # Behind the server's own name it stands for nobody else.
    async with served(both(), TRUSTED, write) as house:
        assert f"mcp:web:{name}" in await house.names()
    # The guard-off control.
    monkeypatch.setattr(naming, "respelled", nothing_odd)
    async with served(both(), settings, write) as house:
        assert name in await house.names()


@pytest.mark.parametrize("kind", ODD)
async def test_a_description_that_hides_something_is_not_offered(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [tool("odd", ODD[kind]), tool("fine")]
    upstream = MemoryUpstream("it", tools=listed)
    async with served({"it": upstream}, TRUSTED) as house:
        assert await house.names() == ["mcp:it:fine"]
        assert "suspicious" in house.states()["mcp:it:odd"]
        assert house.states()["mcp:it:odd"].isprintable()
        assert house.gate.catalog.current.specs["mcp:it:odd"].description != ODD[kind]
        with pytest.raises(ToolNotFound):
            await house.gate.call("mcp:it:odd", {}, caller=ME)
        assert upstream.heard == []
    # The guard-off control: a model would read it.
    monkeypatch.setattr("toolgate.sources.mcp.judging.suspicions", nothing_odd)
    async with served({"it": MemoryUpstream("it", tools=listed)}, TRUSTED) as house:
        assert "mcp:it:odd" in await house.names()


async def test_resources_and_prompts_have_tools_that_stand_for_them() -> None:
    upstream = MemoryUpstream("docs", resources=[{"uri": "a://b"}], prompts=[{"name": "hi"}])
    upstream.answers = {"resources/read": {"contents": []}, "prompts/get": {"messages": []}}
    async with served({"docs": upstream}) as house:
        assert await house.names() == ["mcp:docs:get_prompt", "mcp:docs:read_resource"]
        output = await house.gate.call("mcp:docs:read_resource", {"uri": "a://b"}, caller=ME)
        assert output.data == {"contents": []}
        output = await house.gate.call("mcp:docs:get_prompt", {"name": "hi"}, caller=ME)
        assert output.data == {"messages": []}
        assert [one.method for one in upstream.heard] == ["resources/read", "prompts/get"]
    again = MemoryUpstream("docs", resources=[{"uri": "a://b"}], prompts=[{"name": "hi"}])
    async with served({"docs": again}, PLAIN.model_copy(update={"prefix": ""})) as house:
        assert await house.names() == ["get_prompt_of_docs", "read_resource_of_docs"]
