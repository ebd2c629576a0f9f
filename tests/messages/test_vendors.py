"""The vendors' own clients and a toolbox, against stand-ins for their APIs."""

from collections.abc import AsyncGenerator, Generator
from typing import Any

import anthropic
import openai
import pytest

from tests.servers import anthropic_api, openai_api
from tests.servers.model import KEY, Model, Use
from toolgate import Caller, Toolgate, Turn, tool
from toolgate.toolbox import Toolbox

pytestmark = pytest.mark.req("X8", "S2")
ME = Caller(tenant="acme", agent="clerk")
QUESTION: dict[str, Any] = {"role": "user", "content": "Send Bob a letter."}
sent: list[str] = []


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a letter."""
    sent.append(to)
    return f"sent to {to}"


@pytest.fixture
def model() -> Generator[Model]:
    use = Use("send", {"to": "bob"})
    with Model(openai_api.APIS | anthropic_api.APIS, use) as running:
        yield running


@pytest.fixture
async def vendor(model: Model) -> AsyncGenerator[openai.AsyncOpenAI]:
    url = f"{model.url}/v1"
    async with openai.AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        yield client


@pytest.fixture
def house(gate: Toolgate) -> Toolgate:
    sent.clear()
    gate.add(send)
    return gate


async def chat(client: openai.AsyncOpenAI, box: Toolbox) -> str | None:
    said: list[Any] = [QUESTION]
    while True:
        answer = await client.chat.completions.create(
            model="gpt-5", messages=said, tools=box.tools("openai")
        )
        message = answer.choices[0].message
        results = await box.run(message)
        if not results:
            return message.content
        said += [message, *results]


async def respond(client: openai.AsyncOpenAI, box: Toolbox) -> str:
    said: list[Any] = [QUESTION]
    while True:
        answer = await client.responses.create(
            model="gpt-5", input=said, tools=box.tools("responses")
        )
        results = await box.run(answer)
        if not results:
            return answer.output_text
        said += [*answer.output, *results]


@pytest.mark.parametrize("ask", [chat, respond])
async def test_a_turn_that_is_tried_again_acts_once(
    ask: Any, house: Toolgate, vendor: openai.AsyncOpenAI
) -> None:
    for _attempt in range(2):
        box = house.toolbox(ME, Turn(group="t-1"))
        assert await ask(vendor, box) == "The shop says: sent to bob"
    assert sent == ["bob"]


@pytest.mark.parametrize("ask", [chat, respond])
async def test_another_turn_acts_anew(
    ask: Any, house: Toolgate, vendor: openai.AsyncOpenAI
) -> None:
    for group in ("t-1", "t-2"):
        await ask(vendor, house.toolbox(ME, Turn(group=group)))
    assert sent == ["bob", "bob"]


async def test_the_model_hears_of_every_tool_and_of_what_came_of_its_call(
    house: Toolgate, vendor: openai.AsyncOpenAI, model: Model
) -> None:
    box = house.toolbox(ME, Turn(group="t-1"))
    await chat(vendor, box)
    first, second = model.heard
    assert set(first.tools) == {one["function"]["name"] for one in box.tools("openai")}
    assert (first.rounds, list(first.results)) == (0, [])
    assert (second.rounds, list(second.results)) == (1, ["sent to bob"])


async def test_the_stand_in_refuses_a_call_that_nobody_answered(
    house: Toolgate, vendor: openai.AsyncOpenAI
) -> None:
    tools = house.toolbox(ME, Turn(group="t-1")).tools("openai")
    said: list[Any] = [QUESTION]
    answer = await vendor.chat.completions.create(model="gpt-5", messages=said, tools=tools)
    said += [answer.choices[0].message]
    with pytest.raises(openai.BadRequestError, match="call_0"):
        await vendor.chat.completions.create(model="gpt-5", messages=said, tools=tools)


async def test_the_stand_in_refuses_tools_that_are_none(vendor: openai.AsyncOpenAI) -> None:
    for name, schema in (("a.b", {"type": "object"}), ("send", {"type": "string"})):
        tools: Any = [{"type": "function", "function": {"name": name, "parameters": schema}}]
        with pytest.raises(openai.BadRequestError):
            await vendor.chat.completions.create(model="m", messages=[QUESTION], tools=tools)  # pyright: ignore[reportArgumentType]


async def test_the_stand_in_of_anthropic_refuses_a_use_without_its_result(
    house: Toolgate, model: Model
) -> None:
    tools = house.toolbox(ME, Turn(group="t-1")).tools("anthropic")
    said: list[Any] = [QUESTION]
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=model.url, max_retries=0) as client:
        create = client.messages.create
        message = await create(model="m", max_tokens=9, messages=said, tools=tools)
        said += [{"role": "assistant", "content": message.content}]
        with pytest.raises(anthropic.BadRequestError, match="toolu_0"):
            await create(model="m", max_tokens=9, messages=said, tools=tools)
