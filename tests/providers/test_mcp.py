"""A call of an upstream's tool: what is sent, and what its answer becomes."""

from typing import Any

import pytest

from tests.sources.mcp.served import ME, PLAIN, READS, TRUSTED, served, text, tool
from toolgate.breaker import Outcome
from toolgate.errors import CallFailed, CircuitOpen, ProviderUnavailable, ToolError
from toolgate.executor.resilience.breaking import LIMITS, judged
from toolgate.providers.mcp import KEY, SaidError, data_of
from toolgate.settings.outward import McpServer
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.failures import broken, late
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("P3", "X1")
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
HARMLESS = {"destructiveHint": False}


@pytest.mark.parametrize(
    ("result", "data"),
    [
        (text("hi"), "hi"),
        (text(""), ""),
        (text('{"a": 1}', structuredContent={"a": 1}), {"a": 1}),
        (text('{"b": 2, "a": 1}', structuredContent={"a": 1, "b": 2}), {"a": 1, "b": 2}),
        (text("a: 1", structuredContent={"a": 1}), None),
        (text('{"a": 1}', structuredContent={"a": True}), None),
        (text('{"a": 1.0, "b": [0]}', structuredContent={"b": [0], "a": 1}), None),
        ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [IMAGE]}, None),
        ({"content": [{"type": "text", "text": "x", "annotations": {"priority": 1}}]}, None),
        ({"content": [*text("a")["content"], IMAGE]}, None),
        ({"content": []}, {"content": [], "isError": False}),
        ({}, {"content": [], "isError": False}),
        ({"content": [{"type": "future"}]}, {"content": [{"type": "future"}], "isError": False}),
        ({"content": [{"kind": "none"}]}, None),
        (text("hi", _meta={"a": 1}), None),
        (text("{}", structuredContent={}, _meta={"a": 1}), {}),
    ],
)
def test_a_result_becomes_data(result: dict[str, Any], data: Any) -> None:
    """`None` here: as it came."""
    assert data_of(result) == (result if data is None else data)


def upstream(result: Any, **annotations: Any) -> MemoryUpstream:
    found = MemoryUpstream("it", tools=[tool("one", annotations=annotations)])
    found.tools = {"one": result}
    return found


async def test_an_image_arrives_untouched() -> None:
    async with served({"it": upstream({"content": [IMAGE]}, **READS)}, TRUSTED) as house:
        assert (await house.gate.call("one", {}, caller=ME)).data == {"content": [IMAGE]}


OWN = ("focal://tools/agent/clerk/enabled", "toolgate://outputs/x", "FOCAL://tools", " focal:x")


@pytest.mark.parametrize("uri", OWN)
async def test_nothing_of_a_server_stands_under_a_uri_of_the_house(uri: str) -> None:
    """A URI of its own stays; without the guard so does ours."""
    link = {"type": "resource_link", "uri": uri, "name": "x"}
    held = {"type": "resource", "resource": {"uri": uri, "text": "all is well"}}
    fine = {"type": "resource", "resource": {"uri": "docs://focal:x", "text": "fine"}}
    sent = {"content": [link, held, fine]}
    it = upstream(sent, **READS)
    it.lists[Kind.RESOURCES], it.lists[Kind.PROMPTS] = [{"uri": "a://b"}], [{"name": "hi"}]
    it.answers = {
        "resources/read": {"contents": [held["resource"], fine["resource"]]},
        "prompts/get": {"messages": [{"role": "user", "content": held}, {"content": [link]}]},
    }
    ours = f"mcp:it:{uri}"
    async with served({"it": it}, TRUSTED) as house:
        data = (await house.gate.call("one", {}, caller=ME)).data
        assert data == {
            "content": [
                link | {"uri": ours},
                held | {"resource": {"uri": ours, "text": "all is well"}},
                fine,
            ]
        }
        assert data_of(sent) == sent, "without the guard it stays"
        read = await house.gate.call("mcp:it:read_resource", {"uri": "a://b"}, caller=ME)
        assert [one["uri"] for one in read.data["contents"]] == [ours, "docs://focal:x"]
        got = await house.gate.call("mcp:it:get_prompt", {"name": "hi"}, caller=ME)
        assert got.data["messages"][0]["content"]["resource"]["uri"] == ours
        assert got.data["messages"][1]["content"][0]["uri"] == ours


async def test_a_side_effect_is_sent_with_the_key_that_it_is_known_by() -> None:
    it = upstream(text("done"), **HARMLESS)
    async with served({"it": it}, TRUSTED) as house:
        assert (await house.gate.call("one", {"text": "x"}, caller=ME)).ok
        [heard] = it.heard
        assert heard.params["arguments"] == {"text": "x"}
        assert set(heard.meta or {}) == {KEY}
        assert 0 < heard.seconds <= 30


async def test_a_tool_that_nobody_vouches_for_waits_for_a_person() -> None:
    it = upstream(text("done"))
    async with served({"it": it}, PLAIN) as house:
        output = await house.gate.call("one", {}, caller=ME)
        assert output.status == "pending_approval"
        assert it.heard == []


@pytest.mark.parametrize(
    ("hints", "status", "code"),
    [
        (READS, "error", "tool_error"),
        (HARMLESS, "unknown", "execution_failed"),
        ({**HARMLESS, "idempotentHint": True}, "error", "execution_failed"),
    ],
    ids=["reads", "changes", "repeats"],
)
async def test_an_error_of_the_tool_is_told_and_says_what_may_have_happened(
    hints: dict[str, bool], status: str, code: str
) -> None:
    it = upstream(text("No such file.", isError=True), **hints)
    async with served({"it": it}, TRUSTED) as house:
        output = await house.gate.call("one", {}, caller=ME)
        assert output.error is not None
        assert (output.status, output.error.code) == (status, code)
        assert "No such file." in output.error.message
        assert ("check before you call it again" in output.error.message) == (status == "unknown")


@pytest.mark.parametrize("lost", [broken("it", "its program ended."), late("it", 5)])
@pytest.mark.parametrize("hints", [READS, HARMLESS], ids=["reads", "changes"])
async def test_who_gets_no_answer_is_told_to_check_only_where_something_can_have_happened(
    hints: dict[str, bool], lost: CallFailed
) -> None:
    it = upstream(type(lost)(lost.message), **hints)
    async with served({"it": it}, TRUSTED) as house:
        output = await house.gate.call("one", {}, caller=ME)
        assert output.error is not None
        assert output.error.message.startswith(lost.message)
        is_unknown = output.status == "unknown"
        assert ("check before you call it again" in output.error.message) == is_unknown
        assert is_unknown == (hints is HARMLESS)


async def test_arguments_that_do_not_fit_are_not_sent() -> None:
    it = upstream(text("done"), **READS)
    async with served({"it": it}, TRUSTED) as house:
        with pytest.raises(Exception, match="do not fit"):
            await house.gate.call("one", {"text": 1}, caller=ME)
        assert it.heard == []


async def test_a_server_that_is_away_is_told_as_that() -> None:
    it = upstream(text("done"), **READS)
    async with served({"it": it}, TRUSTED) as house:
        it.problem = "It is gone."
        with pytest.raises(ProviderUnavailable):
            await house.gate.call("one", {}, caller=ME)


def test_a_tools_own_error_does_not_count_against_its_server() -> None:
    assert judged(SaidError("no")) is Outcome.IGNORED
    assert judged(ToolError("no")) is Outcome.IGNORED
    assert judged(ProviderUnavailable("away")) is Outcome.FAILED


@pytest.mark.parametrize("lost", [broken("it", "its program ended."), late("it", 5)])
async def test_what_goes_wrong_with_a_server_counts_against_it(lost: CallFailed) -> None:
    it = upstream(lost, **READS)
    async with served({"it": it}, TRUSTED) as house:
        for _ in range(LIMITS.at_least):
            assert (await house.gate.call("one", {}, caller=ME)).error is not None
        sent = len(it.heard)
        with pytest.raises(CircuitOpen):
            await house.gate.call("one", {}, caller=ME)
        assert len(it.heard) == sent
    # The control: what it says itself opens nothing.
    it = upstream(text("No.", isError=True), **READS)
    async with served({"it": it}, TRUSTED) as house:
        for _ in range(3 * LIMITS.at_least):
            assert (await house.gate.call("one", {}, caller=ME)).error is not None


def test_the_other_shape_of_settings_is_taken() -> None:
    given = {"command": ["uvx", "server"], "args": ["--root", "/data"], "timeout": 120}
    assert McpServer.model_validate(given).args == ("--root", "/data")
