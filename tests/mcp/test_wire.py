"""What stands on the wire, right and wrong: `/mcp` as a client without a library meets it."""

import asyncio
import contextlib
from typing import Any

import aiohttp
import orjson
import pytest
from multidict import CIMultiDict

from tests.house import until
from tests.mcp.house import META, MODERN, House
from toolgate import tool
from toolgate.server.heads import Heads
from toolgate.server.mcp import rpc, spoken
from toolgate.spec.names import for_model
from toolgate.tools.table import table

pytestmark = pytest.mark.req("V1", "V3")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
ROUTED = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.mark.parametrize("authorization", ["", "Bearer nobody", "Basic x", "Bearer "])
async def test_nobody_gets_in_without_a_key(house: House, authorization: str) -> None:
    headers = {"Authorization": authorization, **ROUTED}
    status, body = await house.send(orjson.dumps(LIST), headers=headers)
    assert (status, body["error"]["data"]["code"]) == (401, "unauthenticated")
    assert "send Authorization: Bearer KEY" in body["error"]["message"]
    # The control.
    assert (await house.send(orjson.dumps(LIST), headers=ROUTED))[0] == 200


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"nonsense", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"n":1e999}}', -32700),
        (b"[" + orjson.dumps(LIST) + b"]", -32700),
        (b'{"id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32602),
    ],
)
async def test_what_is_no_message_is_a_fault(house: House, raw: bytes, code: int) -> None:
    status, body = await house.send(raw, headers=ROUTED)
    assert (status, body["error"]["code"]) == (400, code)
    assert "id" not in body


# What stands where arguments belong.
HOSTILE: dict[str, bytes] = {
    "a thousand deep": b'{"x":' * 1_000 + b"1" + b"}" * 1_000,
    "a hundred thousand deep": b"[" * 100_000 + b"]" * 100_000,
    "the same name twice": b'{"text":"a","text":"b"}',
    "beyond numbers": b'{"text":1e999}',
    "not a number": b'{"text":NaN}',
    "half a character": b'{"text":"\\ud800"}',
    "not utf-8": b'{"text":"\xff"}',
    "a long number": b'{"text":' + b"9" * 100_000 + b"}",
    "many names": orjson.dumps({str(number): 0 for number in range(100_001)}),
}


@pytest.mark.parametrize("kind", [*HOSTILE, "fine"])
async def test_arguments_that_were_made_to_hurt_are_not_read(house: House, kind: str) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def keep(text: str) -> str:
        """Keep it."""
        ran.append(text)
        return text

    house.gate.add(keep)
    params = orjson.dumps({"name": "keep", "_meta": META})[:-1]
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b,"arguments":%b}}' % (
        params,
        HOSTILE.get(kind, b'{"text":"fine"}'),
    )
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "keep"}
    status, body = await house.send(raw, headers=headers)
    if kind == "fine":
        assert (status, ran) == (200, ["fine"])
        return
    assert (status, body["error"]["code"], ran) == (400, -32700, []), body
    assert len(body["error"]["message"]) < 400


@pytest.mark.parametrize(
    ("headers", "meta", "code"),
    [
        ({"MCP-Protocol-Version": "2025-99-99"}, {}, -32020),
        ({"Mcp-Method": "prompts/list"}, {}, -32020),
        ({"Mcp-Method": "TOOLS/LIST"}, {}, -32020),
        ({"Mcp-Method": ""}, {}, -32020),
        ({}, {VERSION: "v999"}, -32020),
        ({"MCP-Protocol-Version": "v999"}, {VERSION: "v999"}, -32022),
        ({}, {VERSION: None}, -32602),
        ({}, {CAPABILITIES: None}, -32602),
        ({}, {CAPABILITIES: []}, -32602),
        ({}, {VERSION: 7}, -32602),
    ],
)
async def test_headers_and_body_say_the_same(
    house: House, headers: dict[str, str], meta: dict[str, Any], code: int
) -> None:
    status, body = await house.post("tools/list", meta=meta, headers=headers)
    assert (status, body["error"]["code"], body["id"]) == (400, code, 1)


async def test_a_header_that_routes_stands_there_once(house: House) -> None:
    twice = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")]
    headers = CIMultiDict([("Authorization", f"Bearer {house.ann}"), *twice])
    headers.add("Mcp-Method", "tools/list")
    async with (
        aiohttp.ClientSession() as http,
        http.post(house.url, data=orjson.dumps(LIST), headers=headers) as answer,
    ):
        assert (await answer.json())["error"]["code"] == -32020


async def test_two_keys_are_none(house: House) -> None:
    headers = CIMultiDict([*ROUTED.items(), ("Authorization", f"Bearer {house.ann}")])
    headers.add("Authorization", f"Bearer {house.other}")
    async with (
        aiohttp.ClientSession() as http,
        http.post(house.url, data=orjson.dumps(LIST), headers=headers) as answer,
    ):
        assert answer.status == 401


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "tasks/list", "no/x"])
async def test_a_method_that_the_revision_lacks_is_not_there(house: House, method: str) -> None:
    status, body = await house.post(method)
    assert (status, body["error"]["code"]) == (404, -32601)


async def test_arguments_that_belong_into_headers_stand_in_both(house: House) -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region}}

    @tool(effect="pure", input_schema=schema)
    async def look(region: str = "") -> str:
        """Look there."""
        return region

    house.gate.add(look)
    params = {"name": "look", "arguments": {"region": "eu"}}
    for header, fits in (("eu", True), ("=?base64?ZXU=?=", True), ("us", False), (None, False)):
        more = {} if header is None else {"Mcp-Param-Region": header}
        status, body = await house.post("tools/call", params, headers=more)
        assert (status == 200) is fits, (header, body)


async def test_lists_come_by_the_page(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.server.mcp.listing.PAGE", 2)
    names: list[str] = []
    cursor = None
    for _ in table():
        params = {} if cursor is None else {"cursor": cursor}
        _status, body = await house.post("tools/list", params)
        names += [one["name"] for one in body["result"]["tools"]]
        cursor = body["result"].get("nextCursor")
        if cursor is None:
            break
    assert names == sorted(names)
    assert names == sorted(table())
    for wrong in ("x", "YWZ0ZXI6", 7, "!!"):
        status, body = await house.post("tools/list", {"cursor": wrong})
        assert (status, body["error"]["code"]) == (400, -32602)


async def test_names_that_no_model_takes_are_listed_and_called_by_others(house: House) -> None:
    @tool(effect="pure", name="files:read/all." + "x" * 80)
    async def read() -> str:
        """Read."""
        return "read"

    house.gate.add(read)
    _status, body = await house.post("tools/list")
    shown = next(one["name"] for one in body["result"]["tools"] if "files" in one["name"])
    assert len(shown) <= 64
    _status, body = await house.post("tools/call", {"name": shown})
    assert body["result"]["content"] == [{"type": "text", "text": "read"}]


@pytest.mark.parametrize(("effect", "ends"), [("pure", True), ("irreversible", False)])
async def test_who_goes_away_ends_only_what_changes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, effect: Any, *, ends: bool
) -> None:
    monkeypatch.setattr("toolgate.server.mcp.running._AFTER", 0.05)
    begun, over, go = asyncio.Event(), list[str](), asyncio.Event()

    @tool(effect=effect)
    async def work() -> str:
        """Work."""
        begun.set()
        try:
            await go.wait()
        except asyncio.CancelledError:
            over.append("cancelled")
            raise
        over.append("finished")
        return "worked"

    house.gate.add(work)
    asked = asyncio.create_task(house.post("tools/call", {"name": "work"}))
    await begun.wait()
    asked.cancel()
    if not ends:
        await asyncio.sleep(0.3)
        go.set()
    await until(lambda: over == ["cancelled" if ends else "finished"])
    if not ends:
        await until(lambda: bool(over))
        entries = await house.gate.journal.entries("acme")
        assert [str(one.state) for one in entries] in (["succeeded"], ["started"])


async def test_what_was_done_for_who_went_away_is_done_once_and_can_be_had(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.server.mcp.running._AFTER", 0.05)
    begun, go, ran = asyncio.Event(), asyncio.Event(), list[str]()

    @tool(effect="irreversible")
    async def work() -> str:
        """Work."""
        begun.set()
        await go.wait()
        ran.append("worked")
        return "worked"

    house.gate.add(work)
    meta = {"toolgate/idempotencyKey": "order-17"}
    asked = asyncio.create_task(house.post("tools/call", {"name": "work"}, meta=meta))
    await begun.wait()
    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    go.set()
    await until(lambda: bool(ran))
    # Under another id of a request, and more than once.
    for id_ in (1, 2, "x"):
        _status, body = await house.post("tools/call", {"name": "work"}, meta=meta, id_=id_)
        assert body["id"] == id_
        assert body["result"]["content"][0]["text"] == "worked"
        assert body["result"]["_meta"]["toolgate/cached"] is True
    assert ran == ["worked"]
    [entry] = await house.gate.journal.entries("acme")
    assert str(entry.state) == "succeeded"


async def test_headers_say_what_a_library_cannot_say_in_meta(house: House) -> None:
    @tool(effect="irreversible")
    async def mail(to: str) -> str:
        """Send it."""
        return to

    house.gate.add(mail)
    params = {"name": "mail", "arguments": {"to": "bob"}}

    async def call(headers: dict[str, str], **meta: str) -> Any:
        told = {f"toolgate/{name}": value for name, value in meta.items()}
        return (await house.post("tools/call", params, headers=headers, meta=told))[1]

    def id_of(answer: Any) -> str:
        return answer["result"]["_meta"]["toolgate/callId"]

    keyed = {"Idempotency-Key": "k-1"}
    assert id_of(await call(keyed)) == id_of(await call(keyed))
    assert id_of(await call(keyed)) == id_of(await call({}, idempotencyKey="k-1"))
    grouped = {"Toolgate-Turn-Group": "t-1"}
    assert id_of(await call(grouped)) == id_of(await call({}, turnGroup="t-1"))
    assert id_of(await call({})) != id_of(await call({}))
    differs = await call(keyed, idempotencyKey="k-2")
    assert differs["error"]["code"] == -32602
    said = rpc.Message(1, "tools/call", params, is_request=True)
    once = Heads({b"idempotency-key": b"a"})
    assert spoken.heard(said, once).params["_meta"] == {"toolgate/idempotencyKey": "a"}
    with pytest.raises(rpc.Fault, match="twice"):
        spoken.heard(said, Heads(once.found, frozenset(once.found)))


async def test_who_listens_is_told_of_changes_until_the_key_is_revoked(house: House) -> None:
    heard: list[str] = []
    told = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    body = {"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen"}
    raw = orjson.dumps(body | {"params": told | {"_meta": META}})
    headers = {
        "Authorization": f"Bearer {house.plain}",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
        "Accept": "text/event-stream, application/json",
    }

    async def listen() -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.post(house.url, data=raw, headers=headers) as stream,
        ):
            async for line in stream.content:
                if line.startswith(b"data: "):
                    heard.append(line.decode())  # noqa: PERF401  each when it comes

    listening = asyncio.create_task(listen())
    await until(lambda: len(heard) == 1)
    assert "acknowledged" in heard[0]
    assert "promptsListChanged" not in heard[0]
    await house.gate.tenancy.by("test").set_tenant_tool("acme", "echo", enabled=False)
    await until(lambda: len(heard) == 2)
    assert "tools/list_changed" in heard[1]
    assert '"io.modelcontextprotocol/subscriptionId":"sub"' in heard[1]
    [key] = [one for one in house.gate.tenancy.world.keys.values() if one.agent == "robot"]
    await house.gate.tenancy.by("test").revoke_key(key.id)
    await asyncio.wait_for(listening, 20)


async def test_a_hidden_tool_is_refused_by_the_name_that_was_sent(house: House) -> None:
    @tool(effect="pure", name="ops.hidden")
    async def hidden() -> str:
        """Nobody's."""
        return "x"

    house.gate.add(hidden)
    listed = for_model("ops.hidden")
    params: dict[str, Any] = {"name": listed, "arguments": {}}
    assert "error" not in (await house.post("tools/call", params))[1], "it can be called by it"
    await house.gate.tenancy.set_tool("ops.hidden", enabled=False)
    told = (await house.post("tools/call", params))[1]["error"]["message"]
    assert listed in told
    assert "ops.hidden" not in told
