"""Frameworks as their users set them up, against the doors of a house."""

from collections.abc import Callable
from typing import Any

import pytest
from agents.mcp import MCPServerStreamableHttp
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from tests.mcp.house import House
from toolgate import Caller, tool

pytestmark = pytest.mark.req("V1")
ANN = Caller(tenant="acme", agent="billing", user="ann")
sent: list[str] = []
Headers = dict[str, str]


@tool(effect="irreversible")
async def mail(to: str) -> str:
    """Send a letter."""
    sent.append(to)
    return f"letter {len(sent)}"


@tool(effect="irreversible", requires_confirmation=True)
async def pay(to: str) -> str:
    """Pay somebody."""
    sent.append(to)
    return f"paid {to}"


async def by_openai_agents(house: House, headers: Headers, name: str) -> str:
    params: Any = {"url": house.url, "headers": headers}
    async with MCPServerStreamableHttp(params) as server:
        result = await server.call_tool(name, {"to": "a"})
    [block] = result.content
    assert block.type == "text"
    return block.text


async def by_pydantic_ai(house: House, headers: Headers, name: str) -> str:
    toolset = MCPToolset[object](house.url, headers=headers, tool_error_behavior="failed")
    agent = Agent(TestModel(call_tools=[name]), toolsets=[toolset])
    result = await agent.run("Go.")
    [answer] = [
        part
        for message in result.all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]
    return str(answer.content)


FRAMEWORKS = [by_openai_agents, by_pydantic_ai]
By = Callable[[House, Headers, str], Any]


@pytest.fixture(autouse=True)
def shop(house: House) -> None:
    sent.clear()
    house.gate.add(mail, pay)


def who(house: House, **more: str) -> Headers:
    return {"Authorization": f"Bearer {house.ann}", **more}


@pytest.mark.req("S2")
@pytest.mark.parametrize("call", FRAMEWORKS)
async def test_what_is_done_in_one_turn_is_done_once(house: House, call: By) -> None:
    headers = who(house, **{"Toolgate-Turn-Group": "t-1"})
    assert [await call(house, headers, "mail") for _ in range(2)] == ["letter 1", "letter 1"]
    assert sent == ["a"]


@pytest.mark.req("S2")
@pytest.mark.parametrize("call", FRAMEWORKS)
async def test_a_framework_that_names_no_turn_acts_each_time(house: House, call: By) -> None:
    assert [await call(house, who(house), "mail") for _ in range(2)] == ["letter 1", "letter 2"]


@pytest.mark.req("S6")
@pytest.mark.parametrize("call", FRAMEWORKS)
async def test_a_framework_that_cannot_ask_is_told_and_calls_again(house: House, call: By) -> None:
    assert "needs confirmation by the user" in await call(house, who(house), "pay")
    assert sent == []
    [asked] = await house.gate.approvals.list(ANN)
    await house.gate.approvals.approve(asked.id, by=ANN)
    assert await call(house, who(house), "pay") == "paid a"
    assert "needs confirmation" in await call(house, who(house), "pay")
    assert sent == ["a"]
