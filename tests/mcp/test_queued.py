"""Calls that a worker runs, for clients without tasks: one that was taken is no error, and there is
a way to its result.
"""

import asyncio
from typing import Any

import orjson
import pytest

from tests.mcp.house import MODES, House
from tests.mcp.test_promised import ROWS, texts
from tests.queue.yard import over
from toolgate import tool

pytestmark = pytest.mark.req("V1", "P6", "S2")
both = pytest.mark.parametrize("mode", MODES)
KEY = "toolgate/idempotencyKey"
AT_ONCE: Any = {"toolgate/waitSeconds": 0}
ONE = {"rows": [{"id": "1"}]}


class Yard:
    """Queued tools that wait until they are let go, and how often they ran."""

    def __init__(self, house: House) -> None:
        self.go = asyncio.Event()
        self.ran = 0

        async def run() -> dict[str, Any]:
            await self.go.wait()
            self.ran += 1
            return ONE

        @tool(effect="irreversible", execution="queued", output_schema=ROWS)
        async def book() -> dict[str, Any]:
            """Book it."""
            return await run()

        @tool(effect="pure", execution="queued")
        async def look() -> dict[str, Any]:
            """Look at it."""
            return await run()

        @tool(effect="irreversible", execution="queued", requires_confirmation=True)
        async def sell() -> dict[str, Any]:
            """Sell it, once the user agrees."""
            return await run()

        house.gate.add(book, look, sell)


@pytest.fixture
def yard(house: House) -> Yard:
    return Yard(house)


async def stands(client: Any, uri: str) -> dict[str, Any]:
    """What is to be read of a call."""
    [held] = (await client.read_resource(uri)).contents
    return orjson.loads(held.text)


@both
async def test_a_call_that_was_taken_is_no_error_and_its_result_is_read_by_its_id(
    house: House, yard: Yard, mode: str
) -> None:
    # The official client holds each result against the schema that was listed.
    async with house.client(mode) as client:
        for name in ("look", "book"):
            yard.go.clear()
            told = await client.call_tool(name, {}, meta=AT_ONCE)
            assert not told.is_error
            shown = told.structured_content
            assert shown is not None
            call_id, uri = shown["call_id"], shown["resource"]
            assert shown == {"status": "queued", "call_id": call_id, "resource": uri}
            assert told.meta is not None
            assert told.meta["toolgate/status"] == "queued"
            assert "toolgate/error" not in told.meta
            assert uri in texts(told)[0]
            assert (await stands(client, uri))["output"] is None
            yard.go.set()
            await over(house.gate, [call_id])
            ended = await stands(client, uri)
            assert (ended["state"], ended["output"]["data"]) == ("succeeded", ONE)
    async with house.client(mode, key=house.plain) as other:
        with pytest.raises(Exception, match="no such resource"):
            await stands(other, uri)


@both
@pytest.mark.parametrize("given", ["nothing", "key", "turn"])
async def test_the_same_call_again_is_given_the_result_and_does_nothing_twice(
    house: House, yard: Yard, mode: str, given: str
) -> None:
    said = {
        "nothing": {},
        "key": {KEY: "order-7"},
        "turn": {"toolgate/turnGroup": "t-7"},
    }[given]
    async with house.client(mode) as client:
        told = await client.call_tool("book", {}, meta=AT_ONCE | said)
        assert told.meta is not None
        assert told.structured_content is not None
        if given == "turn":
            assert KEY not in told.meta
            assert "in this turn" in texts(told)[0]
        else:
            # Who sent none is told the one that it was given.
            said = {KEY: told.meta[KEY]}
            assert said[KEY] in texts(told)[0]
        yard.go.set()
        call_id = told.structured_content["call_id"]
        await over(house.gate, [call_id])
        again = await client.call_tool("book", {}, meta=AT_ONCE | said)
    assert (again.is_error, again.structured_content) == (False, ONE)
    assert again.meta is not None
    assert (again.meta["toolgate/cached"], again.meta["toolgate/callId"]) == (True, call_id)
    assert yard.ran == 1


@both
async def test_what_changes_nothing_has_no_key_to_be_asked_for_again(
    house: House, yard: Yard, mode: str
) -> None:
    yard.go.set()
    async with house.client(mode) as client:
        told = await client.call_tool("look", {}, meta=AT_ONCE | {KEY: "k"})
        waited = await client.call_tool("look", {})
    assert told.meta is not None
    assert KEY not in told.meta
    assert (waited.is_error, waited.structured_content) == (False, ONE)


async def test_what_a_person_agreed_to_at_the_client_is_taken_in_the_same_words(
    house: House, yard: Yard
) -> None:
    takes: Any = {"elicitation": {"form": {}}}
    meta: Any = AT_ONCE | {"io.modelcontextprotocol/clientCapabilities": takes}
    params: dict[str, Any] = {"name": "sell", "arguments": {}}
    _, asked = await house.post("tools/call", params, meta=meta)
    asked = asked["result"]
    assert asked["resultType"] == "input_required"
    [name] = asked["inputRequests"]
    yes = {name: {"action": "accept", "content": {"confirm": True}}}
    params |= {"inputResponses": yes, "requestState": asked["requestState"]}
    _, told = await house.post("tools/call", params, meta=meta)
    result = told["result"]
    assert (result["isError"], result["structuredContent"]["status"]) == (False, "queued")
    yard.go.set()
    await over(house.gate, [result["structuredContent"]["call_id"]])
    assert yard.ran == 1


@pytest.mark.parametrize(
    "uri", ["toolgate://calls/", "toolgate://calls/call_0", "toolgate://calls/" + "x" * 300]
)
async def test_a_call_that_is_not_there_is_no_resource(house: House, uri: str) -> None:
    _, told = await house.post("resources/read", {"uri": uri})
    assert told["error"]["data"] == {"uri": uri}
    _, listed = await house.post("resources/templates/list")
    uris = [one["uriTemplate"] for one in listed["result"]["resourceTemplates"]]
    assert "toolgate://calls/{call_id}" in uris
