"""Composio's actions through a gate: the real SDK, against a server that speaks its API."""

import json
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.house import states
from tests.late import needs
from tests.providers.composio_server import KEY, ComposioServer
from tests.servers.process import free_port
from toolgate import Caller, Toolgate
from toolgate.errors import ProviderUnavailable, RateLimited, UnsupportedProvider
from toolgate.executor.provider import Provider
from toolgate.providers.composio import entity as entities
from toolgate.providers.composio.client import Client
from toolgate.providers.composio.entity import entity
from toolgate.providers.composio.provider import ComposioProvider
from toolgate.settings.outward import Composio, Providers
from toolgate.settings.settings import Settings
from toolgate.spec.tool import Origin
from toolgate.testing.provider import ProviderSuite, Sample

needs("composio", "an extra")
pytestmark = pytest.mark.req("P5")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "to": {"type": "string"}}}
ANN = Caller(tenant="acme", agent="billing", user="ann")


@pytest.fixture(scope="module")
def far() -> Generator[ComposioServer]:
    with ComposioServer("acme:ann", "acme:ben", "globex:ann", "fixed") as server:
        yield server


def tool(name: str, action: str, **more: Any) -> dict[str, Any]:
    config = {"composio_action": action} | more.pop("config", {})
    return {"name": name, "provider": "composio", "config": config, "input_schema": TEXT} | more


@asynccontextmanager
async def opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, url: str, *tools: dict[str, Any], **more: Any
) -> AsyncGenerator[Toolgate]:
    monkeypatch.setenv("COMPOSIO_CANARY_KEY", KEY)
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / "composio.json").write_text(json.dumps({"tools": tools}))
    named = Composio(api_key_env="COMPOSIO_CANARY_KEY", url=url, **more)
    settings = Settings(root=root, providers=Providers(composio=named))
    async with Toolgate.open(settings) as gate:
        yield gate


async def test_actions_of_a_toolkit_are_tools_with_their_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: ComposioServer
) -> None:
    before = len(far.requests)
    async with opened(tmp_path, monkeypatch, far.url, toolkits=("github",)) as gate:
        specs = gate.catalog.current.specs
        reads, writes = specs["composio:github_get_issue"], specs["composio:github_create_issue"]
        assert (reads.effect, reads.requires_confirmation, reads.destructive) == (
            "pure",
            False,
            False,
        )
        assert (writes.effect, writes.requires_confirmation) == ("irreversible", True)
        # What says both is taken for the worse.
        assert specs["composio:github_delete_repo"].destructive
        assert writes.input_schema.value()["properties"] == {"text": {"type": "string"}}
        assert not {"composio:github_old", "composio:github_odd"} & set(specs)
        [health] = [one for one in gate.catalog.health() if one.source == "composio"]
        assert "1 actions cannot be tools" in health.problem
        # What was told is kept.
        asked = len(far.requests)
        assert asked - before == 3
        await gate.catalog.reload()
        assert len(far.requests) == asked
        output = await gate.call("composio:github_get_issue", {"text": "x"}, caller=ANN)
        assert output.data == {
            "account": "account of acme:ann",
            "arguments": {"text": "x"},
            "version": "20261101_00",
        }


async def test_one_tenant_never_reaches_the_account_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: ComposioServer
) -> None:
    reads = tool("read", "GITHUB_GET_ISSUE", effect="pure", input_schema={"type": "object"})
    forged: list[dict[str, Any]] = [
        {},
        {"user_id": "globex:ann", "entity_id": "globex:ann"},
        {"arguments": {}, "connected_account_id": "globex", "tenant": "globex"},
        {"version": "x", "custom_connection_data": {"a": 1}},
    ]
    async with opened(tmp_path, monkeypatch, far.url, reads) as gate:
        for user in ("ann", "ben"):
            for args in forged:
                caller = Caller(tenant="acme", agent="a", user=user)
                data = (await gate.call("read", args, caller=caller)).data
                assert data["account"] == f"account of acme:{user}"
                assert data["arguments"] == args
        # The other account is there, for its own tenant.
        owner = Caller(tenant="globex", agent="a", user="ann")
        data = (await gate.call("read", {}, caller=owner)).data
        assert data["account"] == "account of globex:ann"
        for user in ("ann:x", "../globex:ann", "globex:ann", "ann\n", "|globex:ann"):
            stranger = Caller(tenant="acme", agent="a", user=user)
            output = await gate.call("read", {}, caller=stranger)
            assert output.error is not None
            assert output.error.details["composio_error"] == "NoConnectedAccount"
        with pytest.raises(UnsupportedProvider, match="account of its user"):
            await gate.call("read", {}, caller=Caller(tenant="acme", agent="a"))


def unquoted(text: str, safe: str) -> str:
    return text


def test_without_quoting_one_user_could_name_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Caller(tenant="acme", agent="a", user="b")
    other = Caller(tenant="acme", agent="x", user="b:a")
    pattern = "{tenant}:{user}:{agent}"
    mixed = "{tenant}:{user}"
    assert entity(mixed, other) != entity(pattern, one) == "acme:b:a"
    monkeypatch.setattr(entities, "quote", unquoted)
    assert entity(mixed, other) == entity(pattern, one)


@pytest.mark.parametrize("given", ["{user}", "", "x", "{tenant}{user}", "{tenant}-{user}", "{env}"])
def test_accounts_that_tenants_would_share_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="tenant"):
        Composio(entity=given)
    assert Composio(entity="prod:{tenant}/{user}")


async def test_an_account_is_fixed_by_the_operator_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: ComposioServer
) -> None:
    fixed = tool("fixed", "GITHUB_GET_ISSUE", effect="pure", config={"entity_id": "fixed"})
    async with opened(tmp_path, monkeypatch, far.url, fixed) as gate:
        assert (await gate.call("fixed", {}, caller=ANN)).data["account"] == "account of fixed"
        spec = gate.catalog.current.specs["fixed"]
        provider = ComposioProvider(Client(KEY, far.url), key=KEY, pattern="{tenant}:{user}")
        from_afar = Sample(config=spec.config.value()).spec("composio")
        assert provider.unusable(from_afar) is None
        from_afar = msgspec.structs.replace(from_afar, origin=Origin("http", "x"))
        assert "on this machine only" in (provider.unusable(from_afar) or "")


async def test_errors_are_told_by_what_they_mean_and_never_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: ComposioServer
) -> None:
    means = {
        "X_FAILS": ("execution_failed", "not_successful", "unknown"),
        "X_BROKEN": ("execution_failed", "Internal", "unknown"),
        "X_CUT": ("execution_failed", "connection", "unknown"),
        "X_ODD": ("execution_failed", "answer", "unknown"),
        "X_ELSEWHERE": ("execution_failed", "307", "unknown"),
        "X_DENIED": ("tool_error", "InvalidKey", "failed"),
        "GITHUB_NONE": ("tool_error", "NoConnectedAccount", "failed"),
    }
    tools = [tool(slug.lower(), slug) for slug in means]
    with ComposioServer() as elsewhere:
        async with opened(
            tmp_path, monkeypatch, far.url, *tools, tool("busy", "X_BUSY"),
            tool("slow", "X_SLOW", timeout=1),
        ) as gate:  # fmt: skip
            nobody = Caller(tenant="acme", agent="billing", user="nobody")
            for slug, (code, told, _state) in means.items():
                args = {"to": f"{elsewhere.url}/api/v3.1/tools/execute/GITHUB_GET_ISSUE"}
                output = await gate.call(slug.lower(), args, caller=nobody)
                assert output.error is not None
                assert (output.error.code, output.error.details["composio_error"]) == (code, told)
                assert KEY not in str(output.to_machine())
            with pytest.raises(RateLimited) as busy:
                await gate.call("busy", {}, caller=nobody)
            assert busy.value.details["retry_after"] == 7
            slow = await gate.call("slow", {}, caller=nobody)
            assert slow.error is not None
            assert slow.error.code == "timed_out"
            found = {name: state for name, state, _code in await states(gate)}
        assert found["slow"] == "unknown"
        assert {slug: found[slug.lower()] for slug in means} == {
            slug: state for slug, (_code, _told, state) in means.items()
        }
        # Nobody else was sent the key.
        assert elsewhere.requests == []


async def test_a_composio_that_is_away_says_that_nothing_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with opened(
        tmp_path, monkeypatch, nowhere, tool("any", "GITHUB_X"), toolkits=("github",)
    ) as gate:
        with pytest.raises(ProviderUnavailable):
            await gate.call("any", {}, caller=ANN)
        [health] = [one for one in gate.catalog.health() if one.source == "composio"]
        assert not health.ok
        assert KEY not in health.problem


async def test_the_sdk_tells_nobody_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: ComposioServer
) -> None:
    from composio.core.models import base  # noqa: PLC0415  an extra

    pushed: list[object] = []

    def push(event: object) -> None:
        pushed.append(event)

    monkeypatch.setattr(base, "push_event", push)
    reads = tool("read", "GITHUB_GET_ISSUE", effect="pure")
    async with opened(tmp_path, monkeypatch, far.url, reads, toolkits=("github",)) as gate:
        assert (await gate.call("read", {}, caller=ANN)).ok
    assert pushed == []


async def test_without_a_key_its_tools_say_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    defined = {"tools": [tool("any", "GITHUB_X")]}
    (tmp_path / "tools" / "composio.json").write_text(json.dumps(defined))
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        assert "api_key_env" in gate.catalog.current.unusable["any"]


async def test_a_variable_without_a_key_is_told_by_tools_and_by_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMPOSIO_CANARY_KEY", raising=False)
    (tmp_path / "tools").mkdir()
    defined = {"tools": [tool("any", "GITHUB_X")]}
    (tmp_path / "tools" / "composio.json").write_text(json.dumps(defined))
    named = Composio(api_key_env="COMPOSIO_CANARY_KEY", toolkits=("github",))
    settings = Settings(root=tmp_path, providers=Providers(composio=named))
    async with Toolgate.open(settings) as gate:
        told = gate.catalog.current.unusable["any"]
        (health,) = [one for one in gate.catalog.health() if one.source == "composio"]
    assert told.startswith("the variable COMPOSIO_CANARY_KEY is not set")
    assert (health.ok, "COMPOSIO_CANARY_KEY" in health.problem) == (False, True)


class TestSuite(ProviderSuite):
    kind = "composio"
    secret = KEY

    @pytest.fixture(autouse=True)
    def _far(self, far: ComposioServer) -> None:
        self.far = far

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        client = Client(KEY, self.far.url)
        provider = ComposioProvider(client, key=KEY, pattern="{tenant}:{agent}")
        self.far.accounts["acme:suite"] = "x"
        yield provider
        provider.close()

    def says(self, text: str) -> Sample:
        return self._sample("GITHUB_ECHO", text)

    def wrong(self) -> Sequence[Sample]:
        return [
            Sample(config={"composio_action": "a/b"}),
            Sample(config={"composio_action": "A", "other": 1}),
            Sample(config={"composio_action": "A", "entity_id": ""}),
        ]

    def fails(self) -> Sample | None:
        return self._sample("X_FAILS", "x")

    def slow(self) -> Sample | None:
        return self._sample("X_SLOW", "x")

    def absent(self) -> Sample | None:
        return self._sample("X_BUSY", "x")

    @staticmethod
    def _sample(slug: str, text: str) -> Sample:
        return Sample(config={"composio_action": slug}, args={"text": text}, input_schema=TEXT)
