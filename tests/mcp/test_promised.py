"""Results are what the list says of them; what is not says that its tool has run all the same."""

from typing import Any

import mcp_types as types
import pytest

from tests.mcp.house import MODES, House
from toolgate import tool

pytestmark = pytest.mark.req("V1")
both = pytest.mark.parametrize("mode", MODES)
TEXT = {"type": "string"}
ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
    "required": ["rows"],
    "additionalProperties": False,
    "$defs": {"row": {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}},
}
# It means itself by its place.
TREE = {
    "type": "object",
    "properties": {"below": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["below"],
}


class Books:
    """What was really booked."""

    def __init__(self) -> None:
        self.booked: list[int] = []

    def tools(self) -> list[Any]:
        @tool(effect="irreversible", output_schema=ROWS)
        async def book(count: int) -> dict[str, Any]:
            """Book so many rows."""
            self.booked.append(count)
            return {"rows": [{"id": f"row {number}"} for number in range(count)]}

        @tool(effect="irreversible", output_schema=ROWS)
        async def wrong() -> dict[str, Any]:
            """Book, and tell something else."""
            self.booked.append(0)
            return {"rows": [{"number": 7}]}

        @tool(effect="pure", output_schema=ROWS)
        async def wrong_look() -> dict[str, Any]:
            """Tell something else."""
            return {"lines": []}

        @tool(effect="pure", output_schema=TREE)
        async def tree(count: int) -> dict[str, Any]:
            """So much below."""
            return {"below": [{"below": []}] * count}

        return [book, wrong, wrong_look, tree]


@tool(effect="pure")
async def numbers() -> list[int]:
    """Two of them."""
    return [1, 2]


@tool(effect="pure")
async def number() -> int:
    """One."""
    return 7


@tool(effect="pure")
async def word() -> str:
    """A text."""
    return "hi"


@pytest.fixture
def books(house: House) -> Books:
    made = Books()
    house.gate.add(*made.tools(), numbers, number, word)
    return made


def texts(result: types.CallToolResult) -> list[str]:
    return [one.text for one in result.content if isinstance(one, types.TextContent)]


async def schemas(client: Any) -> dict[str, Any]:
    return {one.name: one.output_schema for one in (await client.list_tools()).tools}


@both
async def test_a_side_effect_with_a_large_result_is_no_error(
    house: House, books: Books, mode: str
) -> None:
    async with house.client(mode) as client:
        # The official client holds each of them against what was listed.
        small = await client.call_tool("book", {"count": 2})
        large = await client.call_tool("book", {"count": 20_000})
        assert small.structured_content == {"rows": [{"id": "row 0"}, {"id": "row 1"}]}
        assert (small.is_error, large.is_error, books.booked) == (False, False, [2, 20_000])
        told = large.structured_content
        assert told is not None
        assert (told["read_with"], told["size"] > 100_000) == ("read_output", True)
        assert "do not call the tool again" in texts(large)[-1]
        uri = f"toolgate://outputs/{told['reference']}"
        [held] = (await client.read_resource(uri)).contents
        assert '{"id":"row 19999"}' in getattr(held, "text", "")


@both
async def test_a_result_that_does_not_fit_says_that_its_tool_has_run(
    house: House, books: Books, mode: str
) -> None:
    async with house.client(mode) as client:
        done = await client.call_tool("wrong", {})
        look = await client.call_tool("wrong_look", {})
    assert books.booked == [0]
    assert (done.is_error, done.structured_content) == (True, None)
    assert done.meta is not None
    assert done.meta["toolgate/status"] == "success"
    assert done.meta["toolgate/error"] == {"code": "invalid_output", "retryable": False}
    said, shown = texts(done)
    assert "'wrong' ran" in said
    assert "do not call it again" in said
    assert shown == '{"rows":[{"number":7}]}'
    assert look.is_error
    assert "'wrong_look' ran" in texts(look)[0]
    assert "do not call it again" not in texts(look)[0]


async def test_the_newer_revision_has_any_json_and_the_older_one_objects(
    house: House, books: Books
) -> None:
    async with house.client("auto") as client:
        listed = await schemas(client)
        found = [await client.call_tool(name, {}) for name in ("numbers", "number", "word")]
        assert [one.structured_content for one in found] == [[1, 2], 7, None]
        assert [texts(one) for one in found] == [["[1,2]"], ["7"], ["hi"]]
    assert listed["number"]["anyOf"][0] == {"type": "integer"}
    assert listed["numbers"]["anyOf"][0] == {"type": "array", "items": {"type": "integer"}}
    assert listed["word"] is None
    async with house.client("legacy") as client:
        listed = await schemas(client)
        found = [await client.call_tool(name, {}) for name in ("numbers", "number", "word")]
        assert [one.structured_content for one in found] == [None] * 3
        assert [texts(one) for one in found] == [["[1,2]"], ["7"], ["hi"]]
    assert [listed[name] for name in ("numbers", "number", "word")] == [None] * 3
    assert {one["type"] for one in listed.values() if one is not None} == {"object"}


@both
async def test_a_schema_that_means_itself_by_its_place_is_not_promised(
    house: House, books: Books, mode: str
) -> None:
    async with house.client(mode) as client:
        assert (await schemas(client))["tree"] is None
        small = await client.call_tool("tree", {"count": 1})
        large = await client.call_tool("tree", {"count": 20_000})
    assert (small.is_error, small.structured_content) == (False, {"below": [{"below": []}]})
    assert not large.is_error
