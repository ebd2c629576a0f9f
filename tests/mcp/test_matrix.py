"""Every method for every kind of key: who calls tools gets in, and finds only what is its own."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.mcp.house import LEGACY, META, MODERN, House
from tests.mcp.older import BOTH, Older
from tests.mcp.others import behind, library
from tests.mcp.tasking import Desk
from toolgate import tool
from toolgate.server.mcp.answering import Answering
from toolgate.server.rights import OPENS, Right
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V1", "V3")
# What each method is asked with, by an agent of acme.
ASKED: Mapping[str, Mapping[str, Any]] = {
    "server/discover": {},
    "tools/list": {},
    "tools/call": {"name": "echo", "arguments": {"text": "hi"}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "focal://tools/tenant/acme/available"},
    "prompts/list": {},
    "prompts/get": {"name": "mcp:library:review", "arguments": {}},
    "completion/complete": {
        "ref": {"type": "ref/resource", "uri": "focal://tools/tenant/{id}/available"},
        "argument": {"name": "id", "value": ""},
    },
    "tasks/get": {"taskId": "nobodys"},
    "tasks/update": {"taskId": "nobodys", "inputResponses": {}},
    "tasks/cancel": {"taskId": "nobodys"},
}
# What only a session has; the last one ends it.
OWN = {"uri": "focal://tools/tenant/acme/available"}
OF_A_SESSION: Mapping[str, Mapping[str, Any]] = {
    "initialize": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}},
    "ping": {},
    "logging/setLevel": {"level": "error"},
    "resources/subscribe": OWN,
    "resources/unsubscribe": OWN,
    "GET": {},
    "DELETE": {},
}
SESSION = "Mcp-Session-Id"
TASKS: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}}
    }
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    """With a server behind it, which has prompts."""
    async with behind(tmp_path) as found:
        found.put(library())
        yield found.house


async def test_every_method_is_asked_about(house: House) -> None:
    table = Answering(house.gate).methods._table  # pyright: ignore[reportPrivateUsage]
    assert {*table, "tools/list"} == set(ASKED)


def told(body: Any) -> str:
    return body["error"]["data"]["code"]


async def key_of(house: House, role: Role | None) -> str:
    if role is None:
        return "tg_nobodys"
    agent = "billing" if role in {Role.AGENT, Role.ADMIN} else ""
    return (await house.gate.tenancy.by("test").add_key(role, tenant="acme", agent=agent)).secret


def calls(role: Role | None) -> bool:
    return role is not None and Right.CALL in OPENS[role]


@pytest.mark.parametrize("role", [*Role, None])
async def test_only_who_calls_tools_gets_in(house: House, role: Role | None) -> None:
    key, may = await key_of(house, role), calls(role)
    for method, params in ASKED.items():
        status, body = await house.post(method, params, key=key, meta=TASKS)
        if role is None:
            assert (status, told(body)) == (401, "unauthenticated"), method
        elif not may:
            assert (status, told(body)) == (403, "permission_denied"), method
        elif "nobodys" in str(params):
            assert body["error"]["code"] == -32602, (method, body)
        else:
            assert "result" in body, (method, body)


@pytest.mark.parametrize("role", [*Role, None])
async def test_only_who_calls_tools_has_a_session_or_listens(
    house: House, role: Role | None
) -> None:
    key, refused = await key_of(house, role), (401 if role is None else 403)
    async with aiohttp.ClientSession() as http:
        theirs = await Older(house, http).begin()
        stranger = Older(house, http, key)
        if calls(role):
            await stranger.begin()
        for method, params in OF_A_SESSION.items():
            # Also with the session of somebody else, who may.
            for session in (stranger.headers.get("Mcp-Session-Id"), theirs.headers[SESSION]):
                sent = stranger.headers | ({} if session is None else {SESSION: session})
                is_own = session is not None and session != theirs.headers[SESSION]
                status = await _asked(http, house.url, sent, method, params)
                expected = (
                    (200 if is_own or method == "initialize" else 404) if calls(role) else refused
                )
                assert status == expected, (method, is_own)
        # It was not ended, and nothing of it was changed.
        assert "result" in await theirs.ask("ping", accept="application/json")


async def _asked(
    http: aiohttp.ClientSession, url: str, headers: Mapping[str, str], method: str, params: Any
) -> int:
    """A request of the older revision, or one of those that are a word of HTTP's."""
    if method in {"GET", "DELETE"}:
        async with http.request(method, url, headers=headers) as answer:
            return answer.status
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with http.post(url, json=body, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize("role", [*Role, None])
async def test_only_who_calls_tools_listens_on_the_newer_revision(
    house: House, role: Role | None
) -> None:
    headers = {
        "Authorization": f"Bearer {await key_of(house, role)}",
        "Accept": BOTH,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    async with (
        aiohttp.ClientSession() as http,
        http.post(house.url, json=body, headers=headers) as answer,
    ):
        assert answer.status == (200 if calls(role) else 401 if role is None else 403)
        if calls(role):
            assert answer.content_type == "text/event-stream"
            assert b"event: message" in await answer.content.readline()


async def test_a_task_of_another_tenant_answers_as_one_that_is_not_there(house: House) -> None:
    go = asyncio.Event()

    @tool(effect="irreversible")
    async def slowly() -> str:
        """Until it is told to end."""
        await go.wait()
        return "done"

    house.gate.add(slowly)
    desk = Desk(house)
    made = await desk.call("slowly")
    theirs, none = made["taskId"], made["taskId"][:-4] + "none"
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        for key in (house.other, house.plain):
            told = [
                str(await desk.raw(method, {"taskId": one, "inputResponses": {}}, key=key))
                for one in (theirs, none)
            ]
            assert told[0].replace(theirs, "*") == told[1].replace(none, "*"), method
            assert "-32602" in told[0]
    assert (await desk.get(made))["status"] == "working", "its owner has it, as it was"
    go.set()
    assert (await desk.over(made))["status"] == "completed"


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "tools/call"])
async def test_what_is_anothers_answers_as_what_is_not_there(house: House, method: str) -> None:
    @tool(effect="pure")
    async def acmes_own() -> str:
        """Only acme has it."""
        return "own"

    house.gate.add(acmes_own)
    for name in ("acmes_own", "mcp:library:get_prompt", "mcp:library:read_resource"):
        await house.gate.tenancy.set_tenant_tool("globex", name, enabled=False)
    asked = {
        "resources/read": ("uri", "focal://tools/tenant/acme/available", "focal://tools/no"),
        "prompts/get": ("name", "mcp:library:review", "mcp:library:nobodys"),
        "tools/call": ("name", "acmes_own", "nobodys_own"),
    }
    field, theirs, none = asked[method]
    answers = [
        await house.post(method, {field: value}, key=house.other, meta=TASKS)
        for value in (theirs, none)
    ]
    told = [(status, str(body).replace(theirs, "*").replace(none, "*")) for status, body in answers]
    assert told[0] == told[1]
    _status, body = await house.post(method, {field: theirs})
    assert "result" in body
