"""Every method for every kind of key: who calls tools gets in, and finds only what is its own."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.house import House
from tests.mcp.others import behind, library
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


@pytest.mark.parametrize("role", [*Role, None])
async def test_only_who_calls_tools_gets_in(house: House, role: Role | None) -> None:
    key = "tg_nobodys"
    if role is not None:
        agent = "billing" if role in {Role.AGENT, Role.ADMIN} else ""
        made = await house.gate.tenancy.by("test").add_key(role, tenant="acme", agent=agent)
        key = made.secret
    may = role is not None and Right.CALL in OPENS[role]
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


@pytest.mark.parametrize(
    "method", ["resources/read", "prompts/get", "tools/call", "tasks/get", "tasks/cancel"]
)
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
        "tasks/get": ("taskId", "made-by-acme", "made-by-none"),
        "tasks/cancel": ("taskId", "made-by-acme", "made-by-none"),
    }
    field, theirs, none = asked[method]
    answers = [
        await house.post(method, {field: value}, key=house.other, meta=TASKS)
        for value in (theirs, none)
    ]
    told = [(status, str(body).replace(theirs, "*").replace(none, "*")) for status, body in answers]
    assert told[0] == told[1]
    if not method.startswith("tasks/"):
        _status, body = await house.post(method, {field: theirs})
        assert "result" in body
