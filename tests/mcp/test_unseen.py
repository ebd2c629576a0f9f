"""What a caller may not see says nothing of itself, and where nothing runs nothing is read."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.house import House, opened
from tests.mcp.others import BOOK, Behind, library
from toolgate import tool
from toolgate.errors import ToolNotFound
from toolgate.providers.mcp import McpProvider
from toolgate.spec.names import for_model
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.member import Member

pytestmark = pytest.mark.req("V1", "S6")
REGION = {"type": "string", "x-mcp-header": "Region"}
SCHEMA = {"type": "object", "properties": {"region": REGION}}


def mirrored(name: str) -> Any:
    @tool(effect="pure", name=name, input_schema=SCHEMA)
    async def look(region: str = "") -> str:
        """Look there."""
        return region

    return look


async def hide(house: House, name: str) -> None:
    await house.gate.tenancy.by("test").set_tenant_tool("acme", name, enabled=False)


@pytest.mark.parametrize("args", [{"region": "eu"}, {}, ["no object"]])
@pytest.mark.parametrize("header", [{}, {"Mcp-Param-Region": "us"}])
async def test_a_hidden_tool_says_nothing_of_its_headers(
    house: House, args: Any, header: dict[str, str]
) -> None:
    house.gate.add(mirrored("look"), mirrored("seen"))
    await hide(house, "look")

    async def told(name: str) -> tuple[int, str]:
        params = {"name": name, "arguments": args}
        status, body = await house.post("tools/call", params, headers=header)
        return status, str(body).replace(name, "NAME")

    assert await told("look") == await told("none")
    # The control: who may see it is told.
    if isinstance(args, dict) and (args or header):
        assert "-32020" in (await told("seen"))[1]


async def test_by_the_name_that_it_is_listed_under_headers_are_checked_too(house: House) -> None:
    own = "maps/look:" + "x" * 80
    house.gate.add(mirrored(own))
    assert for_model(own) != own
    for name in (own, for_model(own)):
        params = {"name": name, "arguments": {"region": "eu"}}
        assert (await house.post("tools/call", params))[0] == 400
        good = await house.post("tools/call", params, headers={"Mcp-Param-Region": "eu"})
        assert good[0] == 200


async def test_whatever_is_not_there_the_store_is_looked_at_as_often(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = Tenancy.freshen

    async def counted(self: Tenancy) -> None:
        looks.append("look")
        await look(self)

    @tool(effect="irreversible")
    async def pay() -> str:
        """Pay."""
        return "paid"

    house.gate.add(pay, mirrored("look"))
    await hide(house, "pay")
    await hide(house, "look")
    monkeypatch.setattr(Tenancy, "freshen", counted)
    found: list[int] = []
    for name in ("none", "pay", "look"):
        looks.clear()
        _status, body = await house.post("tools/call", {"name": name})
        assert body["error"]["message"] == ToolNotFound(name).message
        found.append(len(looks))
    assert found == [1, 1, 1]
    looks.clear()
    await house.post("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    assert looks == []


@pytest.mark.parametrize("exposed", [True, False])
async def test_where_nothing_can_be_called_nothing_is_read_by_a_call(
    tmp_path: Path, *, exposed: bool
) -> None:
    ran: list[str] = []

    @tool(effect="pure", resource="days://{day}")
    async def day(day: str) -> str:
        """Look it up."""
        ran.append(day)
        return day

    @tool(effect="pure", resource="days://all")
    async def days() -> str:
        """Look them up."""
        ran.append("all")
        return "all"

    members: dict[str, Member] = {}
    providers = {"mcp": McpProvider(members)}
    async with opened(tmp_path, providers=providers, expose_tools=exposed) as house:
        house.gate.add(day, days, mirrored("look"))
        server = library()
        Behind(house, members).put(server)
        for uri in ("days://7", "days://all"):
            status, _ = await house.post("resources/read", {"uri": uri})
            assert (status == 200) is exposed
        assert ran == (["7", "all"] if exposed else [])
        for method in ("resources/list", "resources/templates/list"):
            listed = str((await house.post(method))[1])
            assert ("days://" in listed) is exposed
            assert "focal://" in listed
        _, templates = await house.post("resources/templates/list")
        assert ("toolgate://outputs" in str(templates)) is exposed
        _, told = await house.post("resources/read", {"uri": "toolgate://outputs/x"})
        assert "error" in told
        entries = await house.gate.journal.entries("acme")
        assert (entries == []) is not exposed
        _, told = await house.post("server/discover")
        assert ("listChanged" in told["result"]["capabilities"]["prompts"]) is exposed
        status, _ = await house.post("resources/read", {"uri": BOOK})
        assert (status == 200) is exposed
        status, _ = await house.post("prompts/get", {"name": "mcp:library:review"})
        assert (status == 200) is exposed
        assert len(server.heard) == (2 if exposed else 0)
        params = {"name": "look", "arguments": {"region": "eu"}}
        status, told = await house.post("tools/call", params)
        assert (status, told["error"]["code"]) == ((400, -32020) if exposed else (404, -32601))
