"""A tool is tried again under a key only where what runs it hands the key on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.providers.http_tools import definition, gate
from tests.providers.programs import gate_with, shell_tool, with_bubblewrap
from tests.providers.service import service
from tests.sources.mcp.served import TRUSTED
from tests.tools.means import means
from toolgate import Call, Output, Toolgate, ToolSpec, tool
from toolgate.executor import executor
from toolgate.executor.provider import Provider, keyless
from toolgate.executor.queued import Answers
from toolgate.plugins.brought import Brought
from toolgate.providers.composio.provider import ComposioProvider
from toolgate.providers.mcp import McpProvider
from toolgate.providers.plugged import PluggedProviders
from toolgate.providers.queue import QueueProvider
from toolgate.settings.outward import CustomProvider
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin
from toolgate.testing.house import in_memory
from toolgate.testing.upstream import MemoryUpstream
from toolgate.tools.provider import BuiltinProvider
from toolgate.upstreams.member import Member

pytestmark = pytest.mark.req("S1", "S3")
KEY = {"downstream_key": {"header": "Idempotency-Key"}}
KEYED: dict[str, Any] = {"effect": "irreversible", **KEY}
AGAIN = "could do it twice"


def spec(provider: str, config: Mapping[str, Any] | None = None, **more: Any) -> ToolSpec:
    given = {"name": "act", "description": "Act.", "provider": provider, "config": config or {}}
    return read_tool(given | KEYED | more, origin=Origin("file", "tools.yaml"))


def told(house: Toolgate) -> str:
    return dict(house.catalog.current.unusable).get("act", "")


async def test_a_program_is_handed_no_key_and_so_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bubblewrap(monkeypatch)
    async with gate_with(tmp_path, shell_tool("act", "true", **KEYED)) as house:
        assert AGAIN in told(house)
        assert "write a probe" in told(house)


@pytest.mark.parametrize("fields", [{}, {"effect": "idempotent", **KEY}], ids=["none", "repeats"])
async def test_a_program_without_a_key_or_that_can_be_repeated_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    with_bubblewrap(monkeypatch)
    async with gate_with(tmp_path, shell_tool("act", "true", **fields)) as house:
        assert told(house) == ""


async def test_a_request_holds_the_key(tmp_path: Path) -> None:
    async with service() as there:
        made = definition({"url": f"{there.url}/act"}, **KEYED)
        async with gate(tmp_path, made, place=there.place) as house:
            assert told(house) == ""
            assert (await house.call("act", {}, caller=ME)).ok
        [seen] = there.seen
        assert seen.headers["idempotency-key"]


class Post:
    """Functions that break in the middle, and what they did."""

    def __init__(self) -> None:
        self.keys: list[str] = []

        @tool(**KEYED)
        async def act() -> None:
            """Act."""
            self.keys.append("")
            raise OSError

        @tool(**KEYED)
        async def send(call: Call) -> None:
            """Send."""
            self.keys.append(call.downstream_key)
            raise OSError

        self.act, self.send = act, send


async def test_a_function_that_takes_no_call_has_no_key() -> None:
    post = Post()
    async with in_memory(post.act, post.send) as house:
        assert "call.downstream_key" in house.catalog.current.unusable["act"]
        assert "send" not in house.catalog.current.unusable
        for _ in range(3):
            await house.call("send", caller=ME, idempotency_key="k")
    assert len(post.keys) == 3, "the control: it is tried again"
    assert len({*post.keys, ""}) == 2, "under one key"


async def test_without_the_guard_it_is_done_three_times_under_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trusting(_provider: Provider, _spec: ToolSpec) -> None:
        """Whatever it says."""

    monkeypatch.setattr(executor, "keyless", trusting)
    post = Post()
    async with in_memory(post.act) as house:
        done: list[Output] = [
            await house.call("act", caller=ME, idempotency_key="k") for _ in range(3)
        ]
    assert {one.status for one in done} == {"unknown"}
    assert post.keys == ["", "", ""]


def test_a_built_in_tool_has_a_key_only_where_it_hands_it_on() -> None:
    provider = BuiltinProvider(means())
    assert keyless(provider, spec("builtin", {"builtin": "http_post"})) is None
    assert "hands none on" in str(keyless(provider, spec("builtin", {"builtin": "write_file"})))


def test_messages_hold_the_key_and_actions_of_composio_do_not() -> None:
    assert keyless(QueueProvider(Answers(), None), spec("queue")) is None
    composio = ComposioProvider(None, key="", pattern="")
    assert AGAIN in str(keyless(composio, spec("composio")))


def test_a_tool_of_a_server_is_handed_it_and_a_prompt_is_not() -> None:
    provider = McpProvider({"it": Member("it", TRUSTED, MemoryUpstream("it", tools=[]))})
    named = {"downstream_key": {"argument": "key"}}
    for config, handed in (
        ({"server": "it", "tool": "act"}, True),
        ({"server": "it", "kind": "prompts"}, False),
    ):
        one = spec("mcp", config, **named)
        assert provider.unusable(one) is None
        assert (keyless(provider, one) is None) is handed


class Silent:
    """A provider of somebody else's that says nothing of keys."""

    def unusable(self, spec: ToolSpec) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        return None


class Telling(Silent):
    def unkeyed(self, spec: ToolSpec) -> str | None:
        return None


class Broken(Silent):
    def unkeyed(self, spec: ToolSpec) -> str | None:
        raise RuntimeError


def silent(_settings: Mapping[str, str]) -> Provider:
    return Silent()


def telling(_settings: Mapping[str, str]) -> Provider:
    return Telling()


def broken(_settings: Mapping[str, str]) -> Provider:
    return Broken()


@pytest.mark.parametrize(
    ("kind", "reason"), [("silent", AGAIN), ("telling", "None"), ("broken", "could not look")]
)
async def test_a_kind_of_somebody_elses_has_a_key_if_it_says_so(kind: str, reason: str) -> None:
    named = CustomProvider(use=f"{__name__}:{kind}")
    found = PluggedProviders({kind: named}).find(kind)
    assert found is not None
    brought = Brought()
    brought.take("teller", {kind: globals()[kind]({})})
    for provider in (found, brought.find(kind)):
        assert provider is not None
        one = spec(kind)
        assert provider.unusable(one) is None
        assert reason in str(keyless(provider, one))
    await brought.close()
