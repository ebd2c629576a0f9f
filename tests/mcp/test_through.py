"""A real server behind a real `toolgate serve`: what the official client gets with and without."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import orjson
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, PromptReference

from tests.conformance.behind import Other, gateway
from tests.mcp.house import MODES
from tests.server.serving import Serving
from toolgate.server.mcp.promised import ASIDE

pytestmark = pytest.mark.req("P3", "V1")
CALLS: dict[str, dict[str, Any]] = {
    "test_simple_text": {},
    "test_image_content": {},
    "test_audio_content": {},
    "test_embedded_resource": {},
    "test_multiple_content_types": {},
    "resource_link": {},
    "structured": {"count": 7},
}


@pytest.fixture(scope="module")
def other() -> Generator[Other]:
    with Other() as started:
        yield started


@pytest.fixture(scope="module", params=MODES)
def ways(
    request: pytest.FixtureRequest, other: Other, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[str, Other, Serving]]:
    """The same revision on both sides of the gateway."""
    revision = '"2025-11-25"' if request.param == "legacy" else '"auto"'
    with gateway(tmp_path_factory.mktemp("gateway"), other, revision=revision) as server:
        yield request.param, other, server


@asynccontextmanager
async def client(url: str, mode: str, key: str = "", **more: Any) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        line = streamable_http_client(url, http_client=http)
        async with Client(line, mode=mode, **more) as found:
            yield found


def through(server: Serving) -> tuple[str, str]:
    return f"http://127.0.0.1:{server.port}/mcp", server.greeting["keys"]["agent"]


def shown(value: Any) -> Any:
    """All that was sent, but for what each server says of itself."""
    told = value.model_dump(by_alias=True, exclude_none=True, mode="json")
    for name in ("_meta", "ttlMs", "cacheScope"):
        told.pop(name, None)
    if "structuredContent" in told:
        # A text that only repeats it is written anew: the same value, with other blanks.
        assert orjson.loads(told["content"][0].pop("text")) == told["structuredContent"]
    return told


def own(schema: Any) -> Any:
    """What a tool's own server says of its results, without what may come in their place."""
    if schema is None or "anyOf" not in schema:
        return schema
    first, instead = schema["anyOf"]
    assert instead == ASIDE
    return first


async def everything(found: Client) -> dict[str, Any]:
    """Results of calls, reads, prompts and completions, and the schemas of all tools."""
    got: dict[str, Any] = {
        name: shown(await found.call_tool(name, args)) for name, args in CALLS.items()
    }
    for uri in ("test://static-text", "test://static-binary", "test://template/5/data"):
        got[uri] = shown(await found.read_resource(uri))
    for name, args in (
        ("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}),
        ("test_prompt_with_embedded_resource", {"resourceUri": "test://x"}),
        ("test_prompt_with_image", {}),
    ):
        got[name] = shown(await found.get_prompt(name, args))
    tools = (await found.list_tools()).tools
    got["schemas"] = {
        one.name: (one.input_schema, own(one.output_schema), one.description)
        for one in tools
        if not one.name.endswith("_of_other") and not one.name.startswith("added")
    }
    resources = (await found.list_resources()).resources
    got["resources"] = sorted(
        (str(one.uri), str(shown(one))) for one in resources if not str(one.uri).startswith("focal")
    )
    return got


async def test_what_a_server_sends_arrives_as_it_was_sent(ways: Any) -> None:
    mode, other, server = ways
    async with client(other.url, mode) as directly:
        want = await everything(directly)
    url, key = through(server)
    async with client(url, mode, key) as behind:
        got = await everything(behind)
    assert got.keys() == want.keys()
    for name, one in want.items():
        assert got[name] == one, name


async def test_progress_questions_and_the_end_are_carried(ways: Any) -> None:
    mode, _other, server = ways
    url, key = through(server)
    steps: list[tuple[float, float | None, str | None]] = []
    asked: list[str] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def answer(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "ann", "username": "a", "email": "b"})

    async with client(url, mode, key, elicitation_callback=answer) as found:
        await found.call_tool("test_tool_with_progress", {}, progress_callback=told)
        assert [one[:2] for one in steps] == [(0, 100), (50, 100), (100, 100)]
        tool = "test_elicitation" if mode == "legacy" else "test_input_required_result_elicitation"
        args = {"message": "Who?"} if mode == "legacy" else {}
        done = await found.call_tool(tool, args)
        assert len(asked) == 1
        assert "action=accept" in str(done.content) or "Hello, ann!" in str(done.content)
        failed = await found.call_tool("test_error_handling", {})
        assert failed.is_error
        assert "Error executing tool" in str(failed.content)


async def test_a_call_that_is_given_up_is_given_up_there_too(ways: Any) -> None:
    mode, other, server = ways
    url, key = through(server)
    begun = asyncio.Event()

    async def told(*_: Any) -> None:
        begun.set()

    async with client(other.url, mode) as directly:

        async def count() -> int:
            [told] = (await directly.call_tool("cancelled", {})).content
            return int(getattr(told, "text", "0"))

        before = await count()
        async with client(url, mode, key) as found, anyio.create_task_group() as group:
            group.start_soon(_called, found, told)
            await begun.wait()
            group.cancel_scope.cancel()
        async with asyncio.timeout(20):
            while await count() == before:  # noqa: ASYNC110  another process counts
                await asyncio.sleep(0.05)


async def _called(found: Client, told: Any) -> None:
    await found.call_tool("waiting", {}, progress_callback=told)


async def test_completion_is_the_other_servers(ways: Any) -> None:
    mode, _other, server = ways
    url, key = through(server)
    async with client(url, mode, key) as found:
        done = await found.complete(
            PromptReference(type="ref/prompt", name="test_prompt_with_arguments"),
            {"name": "arg1", "value": "par"},
        )
        assert done.completion.values == ["paris", "park", "party"]
