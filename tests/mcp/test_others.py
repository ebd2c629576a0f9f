"""Resources and prompts of other servers, at our door: under the gate, and as they were sent."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.mcp.house import MODES, House
from tests.mcp.others import BOOK, PNG, Behind, behind, library
from toolgate.asked import Line, Question
from toolgate.errors import ToolError
from toolgate.server.mcp.others import Others
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("P3", "V1")
both = pytest.mark.parametrize("mode", MODES)
READ = "mcp:library:read_resource"
GET = "mcp:library:get_prompt"
ALL = [BOOK, "library://cover", BOOK, "museum://cover"]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Behind]:
    async with behind(tmp_path) as found:
        yield found


async def asked(house: House, method: str, params: Any = None, **more: Any) -> Any:
    return (await house.post(method, params, **more))[1]


async def uris(house: House, key: str = "") -> list[str]:
    found = (await asked(house, "resources/list", key=key))["result"]["resources"]
    return [one["uri"] for one in found if not one["uri"].startswith("focal:")]


async def names(house: House, key: str = "") -> list[str]:
    found = await asked(house, "prompts/list", key=key)
    return [one["name"] for one in found["result"]["prompts"]]


@both
async def test_what_a_server_has_is_listed_and_had_as_it_was_sent(shop: Behind, mode: str) -> None:
    server = library()
    shop.put(server)
    async with shop.house.client(mode) as client:
        listed = (await client.list_resources()).resources
        told = [one.model_dump(by_alias=True, exclude_none=True) for one in listed[3:]]
        assert told == [server.lists[Kind.RESOURCES][0], server.lists[Kind.RESOURCES][1]]
        templates = (await client.list_resource_templates()).resource_templates
        assert "library://{id}/{+rest}" in [one.uri_template for one in templates]
        for uri in (BOOK, "library://7/a/b"):
            read = await client.read_resource(uri)
            [held] = [one.model_dump(by_alias=True, exclude_none=True) for one in read.contents]
            assert held == {"uri": uri, "blob": PNG, "_meta": {"page": 1}}
            assert read.meta is not None
            assert read.meta["from"] == "library"
        [prompt] = (await client.list_prompts()).prompts
        assert prompt.name == "mcp:library:review"
        got = await client.get_prompt(prompt.name, {"book": "1"})
        assert (got.description, got.messages[0].content.type) == ("A review", "text")
        assert "library: {'book': '1'}" in str(got.messages[0].content)
    assert [(one.method, one.params) for one in server.heard[:1]] == [
        ("resources/read", {"uri": BOOK})
    ]


async def test_a_read_is_a_call_of_what_stands_for_it(shop: Behind) -> None:
    shop.put(library())
    await asked(shop.house, "resources/read", {"uri": BOOK})
    await asked(shop.house, "prompts/get", {"name": "mcp:library:review"})
    entries = await shop.house.gate.journal.entries("acme")
    assert sorted((one.tool, one.agent) for one in entries) == [(GET, "billing"), (READ, "billing")]


async def test_what_stands_for_it_can_need_a_person(shop: Behind) -> None:
    server = library()
    shop.put(server, requires_confirmation=True)
    read = await asked(shop.house, "resources/read", {"uri": BOOK})
    assert read["error"]["data"]["code"] == "approval_pending", read
    takes: Any = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    first = await asked(shop.house, "resources/read", {"uri": BOOK}, meta=takes)
    assert first["result"]["resultType"] == "input_required"
    assert server.heard == []
    answers = {"toolgate/confirm": {"action": "accept", "content": {"confirm": True}}}
    again = {"uri": BOOK, "requestState": first["result"]["requestState"]}
    done = await asked(
        shop.house, "resources/read", again | {"inputResponses": answers}, meta=takes
    )
    assert done["result"]["contents"][0]["blob"] == PNG
    completed = await asked(shop.house, "completion/complete", _completing())
    assert completed["result"]["completion"]["values"] == []


def _completing() -> dict[str, Any]:
    ref = {"type": "ref/prompt", "name": "mcp:library:review"}
    return {"ref": ref, "argument": {"name": "book", "value": "a"}}


async def test_a_prompt_that_asks_is_answered_by_asking_again(shop: Behind) -> None:
    async def asks(params: Any, line: Line | None) -> Any:
        assert line is not None
        said = await line.ask({"tone": Question("elicitation/create", {"message": "Which?"})})
        return {"messages": [], "description": said["tone"]["content"]["tone"]}

    server = library()
    server.answers["prompts/get"] = asks
    shop.put(server)
    takes: Any = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    params: dict[str, Any] = {"name": "mcp:library:review"}
    first = (await asked(shop.house, "prompts/get", params, meta=takes))["result"]
    assert first["inputRequests"]["tone"]["params"] == {"message": "Which?"}
    answers = {"tone": {"action": "accept", "content": {"tone": "kind"}}}
    more = {"inputResponses": answers, "requestState": first["requestState"]}
    last = await asked(shop.house, "prompts/get", params | more, meta=takes)
    assert last["result"]["description"] == "kind"
    stolen = await asked(shop.house, "prompts/get", params | more, meta=takes, key=shop.house.plain)
    assert stolen["error"]["code"] == -32602
    cannot = await asked(shop.house, "prompts/get", params)
    assert cannot["error"]["code"] == -32021


async def test_who_may_not_call_what_stands_for_it_finds_nothing(shop: Behind) -> None:
    shop.put(library(), library("museum"))
    assert await uris(shop.house) == ALL
    for tool in (READ, GET):
        await shop.forbid(tool)
    assert await uris(shop.house) == [BOOK, "museum://cover"]
    assert await names(shop.house) == ["mcp:museum:review"]
    # What two have is the other's now.
    read = await asked(shop.house, "resources/read", {"uri": BOOK})
    assert read["result"]["_meta"]["from"] == "museum"
    hidden = await asked(shop.house, "prompts/get", {"name": "mcp:library:review"})
    missing = await asked(shop.house, "prompts/get", {"name": "mcp:library:nothing"})
    assert str(hidden).replace("review", "") == str(missing).replace("nothing", "")
    theirs = await asked(shop.house, "resources/read", {"uri": "library://cover"})
    never = await asked(shop.house, "resources/read", {"uri": "library://never"})
    assert str(theirs).replace("cover", "") == str(never).replace("never", "")
    completed = await asked(shop.house, "completion/complete", _completing())
    assert completed["result"]["completion"]["values"] == []
    # The control: another tenant has all of it.
    assert await uris(shop.house, shop.house.other) == ALL
    assert len(await names(shop.house, shop.house.other)) == 2


async def test_without_the_gate_it_would_be_everybodys(
    shop: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    shop.put(library())
    await shop.forbid(READ)
    assert await uris(shop.house) == []
    shares = Others.shares

    async def anybodys(others: Others, caller: Any, kind: Kind) -> Any:
        return await shares(others, msgspec.structs.replace(caller, tenant="globex"), kind)

    monkeypatch.setattr(Others, "shares", anybodys)
    assert await uris(shop.house) == [BOOK, "library://cover"]


async def test_completion_is_the_servers_once_the_gate_has_said_yes(shop: Behind) -> None:
    server = library()
    shop.put(server)
    done = await asked(shop.house, "completion/complete", _completing())
    assert done["result"]["completion"] == {"values": ["library: review"], "total": 1}
    ref = {"type": "ref/resource", "uri": "library://{id}/{+rest}"}
    params: dict[str, Any] = {"ref": ref, "argument": {"name": "id", "value": ""}}
    params["context"] = {"arguments": {}}
    done = await asked(shop.house, "completion/complete", params)
    assert done["result"]["completion"]["total"] == 1
    assert server.heard[-1].params == params


async def test_no_server_takes_the_place_of_our_own(shop: Behind) -> None:
    server = library()
    own = "focal://tools/tenant/acme/available"
    server.lists[Kind.RESOURCES] = [{"uri": own, "name": "x"}, {"uri": "toolgate://outputs/y"}]
    shop.put(server)
    found = (await asked(shop.house, "resources/list"))["result"]["resources"]
    assert [one["name"] for one in found if one["uri"] == own] == ["tools-available"]
    assert len(found) == 3
    read = await asked(shop.house, "resources/read", {"uri": own})
    assert '"tenant":"acme"' in read["result"]["contents"][0]["text"]


async def test_without_a_prefix_prompts_go_by_their_own_names(shop: Behind) -> None:
    shop.put(library(), prefix="")
    assert await names(shop.house) == ["review"]
    got = await asked(shop.house, "prompts/get", {"name": "review", "arguments": {"book": "2"}})
    assert "library" in str(got["result"]["messages"])
    shop.put(library(), prefix="lib.")
    assert await names(shop.house) == ["lib.review"]


@pytest.mark.req("P3")
async def test_no_server_has_a_prompt_by_the_name_of_anothers(shop: Behind) -> None:
    server = library("aaa")
    server.lists[Kind.PROMPTS] = [{"name": "mcp:billing:deploy"}, {"name": "toolgate:x"}]
    server.lists[Kind.PROMPTS] += [{"name": "mcp:aaa:own"}, {"name": "plain"}]
    shop.put(server, prefix="")
    assert await names(shop.house) == ["mcp:aaa:own", "plain"]
    taken = await asked(shop.house, "prompts/get", {"name": "mcp:billing:deploy"})
    assert "no such prompt" in taken["error"]["message"]


async def test_lists_of_others_come_by_the_page(
    shop: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.server.mcp.paging.PAGE", 2)
    shop.put(library(), library("museum"))
    found: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(9):
        page = (await asked(shop.house, "resources/list", params))["result"]
        found += [one["uri"] for one in page["resources"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert found[3:] == ALL
    wrong = await asked(shop.house, "resources/list", {"cursor": "x"})
    assert wrong["error"]["code"] == -32602


async def test_a_server_that_is_away_leaves_the_others_alone(shop: Behind) -> None:
    away, there = library(), library("museum")
    shop.put(away, there)
    away.go()
    assert await uris(shop.house) == [BOOK, "museum://cover"]
    read = await asked(shop.house, "resources/read", {"uri": "museum://cover"})
    assert read["result"]["_meta"]["from"] == "museum"
    away.come_back()
    assert "library://cover" in await uris(shop.house)


@both
async def test_what_its_server_does_not_have_is_not_there(shop: Behind, mode: str) -> None:
    server = library()
    server.answers["resources/read"] = ToolError("No such book.")
    shop.put(server)
    async with shop.house.client(mode) as client:
        with pytest.raises(Exception, match="No such book") as told:
            await client.read_resource(BOOK)
    error: Any = told.value
    assert error.error.code == (-32602 if mode == "auto" else -32002)


async def test_a_large_resource_comes_whole(shop: Behind) -> None:
    server = library()
    text = "ä" * 300_000
    server.answers["resources/read"] = {"contents": [{"uri": BOOK, "text": text}]}
    shop.put(server)
    read = await asked(shop.house, "resources/read", {"uri": BOOK})
    assert read["result"]["contents"] == [{"uri": BOOK, "text": text}]


async def test_a_server_does_not_say_which_kept_output_is_read(shop: Behind) -> None:
    server = library()
    server.answers["resources/read"] = {"contents": [{"uri": BOOK, "text": "mine " * 60_000}]}
    shop.put(server)
    called = await asked(shop.house, "tools/call", {"name": READ, "arguments": {"uri": BOOK}})
    note = called["result"]["structuredContent"]
    assert note["read_with"] == "read_output"
    # What the house has said of that output, said by a server: whole, and in parts.
    for said in (note, {"read_with": "read_output"}, {**note, "reference": None}):
        server.answers["resources/read"] = said
        read = await asked(shop.house, "resources/read", {"uri": BOOK})
        assert "something else" in read["error"]["message"], read


async def test_capabilities_are_told_as_soon_as_there_is_a_server(shop: Behind) -> None:
    before = (await asked(shop.house, "server/discover"))["result"]["capabilities"]
    assert before["prompts"] == {}
    away = library()
    away.go()
    shop.put(away)
    after = (await asked(shop.house, "server/discover"))["result"]["capabilities"]
    assert after["prompts"] == {"listChanged": True}
    assert after["resources"] == {"listChanged": True, "subscribe": True}
