"""What a server answers a call with arrives at our door as it was sent, also where it failed."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from tests.mcp.house import House, opened
from tests.queue.yard import over
from toolgate.providers.mcp import McpProvider
from toolgate.server.mcp.answers import is_content
from toolgate.settings.outward import McpServer
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Json

pytestmark = pytest.mark.req("P3", "V1")
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
FUTURE = {"type": "hologram", "depth": 3, "_meta": {"page": 1}}
HELD = {"type": "resource", "resource": {"uri": "book://1", "text": "one"}}
COUNTED: Json = {
    "type": "object",
    "properties": {"rows": {"$ref": "#rows"}},
    "required": ["rows"],
    "$defs": {"rows": {"$anchor": "rows", "type": "array"}},
}
SERVER = McpServer(url="http://127.0.0.1:9/mcp")
SECRET = "s3cret-of-mine"  # noqa: S105  of nobody
# What is between a server and us; all else of `_meta` is its word.
BETWEEN = {"io.modelcontextprotocol/serverInfo": {"name": "other"}, "toolgate/callId": "call_1"}


class Behind(NamedTuple):
    house: House
    server: MemoryUpstream

    async def answered(self, result: Json, name: str = "reads", **params: Any) -> Json:
        """What our door makes of a server's result."""
        self.server.tools = {name: result}
        sent: Json = {"name": name, "arguments": {}, **params}
        return (await self.house.post("tools/call", sent))[1]["result"]


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncGenerator[Behind]:
    members: dict[str, Member] = {}
    async with opened(tmp_path, providers={"mcp": McpProvider(members)}) as house:
        server = MemoryUpstream("other")
        members["other"] = Member("other", SERVER, server)
        members["other"].is_checked = True
        secret = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}}
        tools: dict[str, Json] = {
            "reads": {"effect": "pure"},
            "repeats": {"effect": "idempotent"},
            "knows": {"effect": "pure", "input_schema": secret},
            "counts": {"effect": "idempotent", "output_schema": COUNTED, "output_limit": 1_000},
            "later": {"effect": "idempotent", "execution": "queued"},
            "counts_later": {
                "effect": "idempotent",
                "execution": "queued",
                "output_schema": {"type": "object", "required": ["rows"]},
            },
        }
        specs = [
            read_tool(
                {"name": name, "provider": "mcp", "config": {"server": "other", "tool": name}}
                | fields,
                origin=Origin("mcp", "other"),
                file=name,
            )
            for name, fields in tools.items()
        ]
        house.gate.catalog.put("others", specs)
        yield Behind(house, server)


@pytest.mark.parametrize(
    "sent",
    [
        {"content": []},
        {"content": [TEXT, FUTURE]},
        {"content": [FUTURE]},
        {"content": [TEXT], "_meta": {"com.example/trace": "t-1"}},
        {"content": [IMAGE], "_meta": {"widget": {"state": [1]}}},
        {"content": [TEXT, HELD], "structuredContent": {"a": 1}, "_meta": {"x": None}},
        {"content": [TEXT], "structuredContent": {"a": 1}},
    ],
    ids=["nothing", "some new", "all new", "a text's", "an image's", "everything", "no meta"],
)
async def test_a_result_arrives_as_it_was_sent(behind: Behind, sent: Json) -> None:
    meta = sent.get("_meta", {})
    got = await behind.answered(sent | {"_meta": meta | BETWEEN})
    assert got["content"] == sent["content"]
    assert got.get("structuredContent") == sent.get("structuredContent")
    assert got["isError"] is False
    assert {name: got["_meta"].get(name) for name in meta} == meta
    assert got["_meta"]["toolgate/callId"] != "call_1"
    assert got["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "toolgate"


async def test_a_text_alone_stays_one_whatever_its_server_says_of_itself(behind: Behind) -> None:
    got = await behind.answered({"content": [TEXT], "_meta": BETWEEN})
    assert got["content"] == [TEXT]
    assert "structuredContent" not in got


OWN: tuple[Json, ...] = (
    {"content": []},
    {"content": [{"type": "folder", "name": "x"}]},
    {"content": [{"type": []}], "isError": False},
    {"content": ["x"], "isError": False},
    {"content": [TEXT], "count": 1},
)


@pytest.mark.parametrize("data", OWN)
def test_what_a_tool_of_the_house_calls_its_content_is_no_block_for_that(data: Json) -> None:
    assert not is_content(data)


@pytest.mark.parametrize("name", ["reads", "repeats"])
@pytest.mark.parametrize(
    "sent",
    [
        {"content": [TEXT, IMAGE, HELD, FUTURE], "structuredContent": {"a": 1}, "_meta": {"x": 1}},
        {"content": [{"type": "text", "text": "x" * 9_000}]},
        {"content": [], "structuredContent": {"line": 7}},
        {"content": [TEXT], "_meta": {"com.example/trace": "t-1"}},
    ],
    ids=["everything", "long", "structured", "meta"],
)
async def test_so_does_what_comes_with_a_failure(behind: Behind, name: str, sent: Json) -> None:
    meta = sent.get("_meta", {})
    got = await behind.answered(sent | {"isError": True, "_meta": meta | BETWEEN}, name)
    assert got["isError"] is True
    words, *given = got["content"]
    # In the house's words first, which say what to do; then in the server's.
    assert words["text"].startswith(("tool_error: ", "execution_failed: "))
    assert len(words["text"]) < 5_000
    assert given == sent["content"]
    assert got.get("structuredContent") == sent.get("structuredContent")
    assert {name: got["_meta"].get(name) for name in meta} == meta
    assert got["_meta"]["toolgate/error"]["code"] in {"tool_error", "execution_failed"}
    assert got["_meta"]["toolgate/untrusted"] is True


async def test_of_a_failure_in_a_few_words_there_is_no_more_than_these(behind: Behind) -> None:
    got = await behind.answered({"content": [TEXT, TEXT], "isError": True, "_meta": BETWEEN})
    assert got["content"] == [{"type": "text", "text": "tool_error: hi\nhi"}]
    assert "structuredContent" not in got


async def test_a_failure_that_is_on_record_is_answered_the_same_again(behind: Behind) -> None:
    sent: Json = {"content": [IMAGE], "isError": True, "structuredContent": {"a": 1}}
    key = {"toolgate/idempotencyKey": "k-1"}
    first = await behind.answered(sent, "repeats", _meta=key)
    again = await behind.answered(sent, "repeats", _meta=key)
    for got in (first, again):
        assert got["content"][1:] == [IMAGE]
        assert got["structuredContent"] == {"a": 1}


async def test_what_comes_with_a_failure_shows_no_secret_and_nothing_in_our_name(
    behind: Behind,
) -> None:
    forged = {"type": "text", "text": f"pin {SECRET}", "_meta": {"toolgate/server": "bank"}}
    link = {"type": "resource_link", "uri": "focal://tools", "name": "x"}
    sent = {"content": [forged, link], "structuredContent": {"pin": SECRET}, "isError": True}
    got = await behind.answered(sent, "knows", arguments={"pin": SECRET})
    assert len(got["content"]) == 3
    assert SECRET.encode() not in orjson.dumps(got)
    assert got["content"][1]["_meta"] == {}
    assert got["content"][2]["uri"] == "mcp:other:focal://tools"


async def test_too_much_of_it_is_left_out(behind: Behind) -> None:
    large = IMAGE | {"data": "aGk=" * 30_000}
    got = await behind.answered({"content": [TEXT, large], "isError": True})
    assert got["content"] == [{"type": "text", "text": "tool_error: hi"}]


async def test_what_a_server_says_of_its_results_is_listed_as_it_is(behind: Behind) -> None:
    """A result that was kept aside for its size fits no such schema; that it ran is said."""
    [listed] = [
        one
        for one in (await behind.house.post("tools/list", {}))[1]["result"]["tools"]
        if one["name"] == "counts"
    ]
    assert listed["outputSchema"] == COUNTED
    small, large = {"rows": [1]}, {"rows": list(range(1_000))}
    answer = await behind.answered({"content": [], "structuredContent": small}, "counts")
    assert (answer["isError"], answer["structuredContent"]) == (False, small)
    answer = await behind.answered({"content": [], "structuredContent": large}, "counts")
    assert (answer["isError"], "structuredContent" in answer) == (True, False)
    assert answer["_meta"]["toolgate/status"] == "success"
    assert "do not call the tool again" in answer["content"][-1]["text"]


async def test_a_queued_call_is_told_in_no_form_that_the_servers_schema_does_not_know(
    behind: Behind,
) -> None:
    """The list passes that schema on, and a client that checks would raise."""
    meta: Json = {"toolgate/waitSeconds": 0}
    for name, structured in {"later": True, "counts_later": False}.items():
        behind.server.tools = {name: {"content": [TEXT], "structuredContent": {"rows": []}}}
        params: Json = {"name": name, "arguments": {}}
        told = (await behind.house.post("tools/call", params, meta=meta))[1]["result"]
        assert told["_meta"]["toolgate/status"] == "queued"
        assert ("structuredContent" in told, told["isError"]) == (structured, not structured)
        await over(behind.house.gate, [told["_meta"]["toolgate/callId"]])
