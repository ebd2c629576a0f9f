"""What a provider refuses by rules of its own nobody is asked about, and nothing is claimed for."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import write_tools
from tests.house import ME, states
from tests.providers.http_tools import definition, gate, open_schema
from tests.providers.programs import gate_with, shell_tool, with_bubblewrap
from tests.providers.service import service
from toolgate import Toolgate
from toolgate.call import Call, Output
from toolgate.errors import InvalidArguments, ProviderUnavailable, UnsupportedProvider
from toolgate.executor.provider import Choosy, Provider
from toolgate.providers.plugged import PluggedProviders
from toolgate.runtime import Runtime
from toolgate.sandbox import choosing
from toolgate.settings.outward import CustomProvider
from toolgate.settings.settings import Settings
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("P2", "P4", "S6")
PENDING = "pending_approval"
QUEUED_SHELL = """\
tools:
  - name: later_shell
    config: {builtin: run_shell}
    execution: queued
    effect: irreversible
    destructive: true
    requires_approval: true
    input_schema: {type: object, properties: {command: {type: string}}, required: [command]}
"""
EFFECT = {"effect": "irreversible", "requires_approval": True}


def nothing_known(_: object) -> str:
    return ""


async def refused(house: Toolgate | Runtime, tool: str, args: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as found:
        await house.call(tool, args, caller=ME)
    return found.value.message


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"id": ".."}, "/id: must not be . or .."),
        ({"id": "a/../b"}, "/id: must not have / or"),
        ({"id": "%2e%2e"}, "/id: must not be . or .."),
        ({"id": ""}, "/id: must not be empty"),
        ({"id": "1", "name": "a\r\nX-Evil: 1"}, "/name"),
        ({"id": "1", "name": "x" * 70_000}, "cannot be sent: the headers are longer"),
        ({"id": "1", "text": "x" * 9_000}, "cannot be sent: the address is longer"),
    ],
)
async def test_nobody_agrees_to_a_request_that_could_not_be_sent(
    tmp_path: Path, args: dict[str, Any], told: str
) -> None:
    async with service() as there:
        config = {
            "url": f"{there.url}/things/{{id}}",
            "method": "DELETE",
            "query": {"q": "{text}"},
            "headers": {"X-Name": "{name}"},
        }
        async with gate(tmp_path, definition(config, **EFFECT), place=there.place) as house:
            assert told in await refused(house, "act", args)
            assert await house.approvals.list("acme") == []
            # The control: of what can be sent a person is asked, and nothing is sent yet.
            output = await house.call("act", {"id": "1", "name": "n", "text": "t"}, caller=ME)
            assert output.status == PENDING
            assert len(await house.approvals.list("acme")) == 1
        assert there.seen == []


async def test_a_key_that_only_a_claim_brings_is_no_reason(tmp_path: Path) -> None:
    async with service() as there:
        config = {"url": f"{there.url}/payments/{{reference}}", "method": "POST"}
        made = definition(
            config,
            effect="irreversible",
            input_schema=open_schema("id", "reference"),
            downstream_key={"argument": "reference"},
        )
        async with gate(tmp_path, made, place=there.place) as house:
            output = await house.call("act", {}, caller=ME)
            assert output.ok, output.error
        [seen] = there.seen
        assert seen.target.startswith("/payments/")


async def test_nobody_agrees_to_a_command_that_could_not_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bubblewrap(monkeypatch)
    asked = shell_tool("remove", "rm", "{path}", **EFFECT)
    async with gate_with(tmp_path, asked) as house:
        for path, told in (("-rf", "dash"), ("@list", "@"), ("a\0b", "NUL")):
            assert told in await refused(house, "remove", {"path": path})
        assert await house.approvals.list("acme") == []
        output = await house.call("remove", {"path": "rf"}, caller=ME)
        assert output.status == PENDING


@pytest.mark.req("T1")
async def test_nobody_agrees_to_a_program_that_no_sandbox_would_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known by a look for one: none was tried yet."""
    write_tools(tmp_path, QUEUED_SHELL)
    given = {"root": tmp_path, "tools": {"roots": ["agent_files"]}}
    (tmp_path / "agent_files").mkdir()
    args = {"command": "touch here"}
    with_bubblewrap(monkeypatch)
    async with Toolgate.open(Settings.model_validate(given)) as house:
        assert (await house.call("run_shell", args, caller=ME)).status == PENDING
        assert len(await house.approvals.list("acme")) == 1
    monkeypatch.setattr(choosing, "TRIED", {})
    monkeypatch.setenv("PATH", str(tmp_path))
    async with Toolgate.open(Settings.model_validate(given)) as house:
        assert choosing.TRIED == {}, "no start tries one"
        with pytest.raises(ProviderUnavailable, match="apt install bubblewrap") as found:
            await house.call("run_shell", args | {"stdin": "other"}, caller=ME)
        assert not found.value.retryable
        assert len(await house.approvals.list("acme")) == 1
        # A queued one runs where a worker is, which may have one.
        assert (await house.call("later_shell", args, caller=ME)).status == PENDING
        # The guard off: somebody would be asked in vain.
        monkeypatch.setattr(choosing, "known_refusal", nothing_known)
        other = args | {"stdin": "third"}
        assert (await house.call("run_shell", other, caller=ME)).status == PENDING


async def test_what_is_refused_leaves_its_key_to_what_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim would hold the key for the arguments that were wrong."""
    with_bubblewrap(monkeypatch)
    tool = shell_tool("say", "echo", "{path}", effect="irreversible")
    async with gate_with(tmp_path, tool) as house:
        with pytest.raises(InvalidArguments):
            await house.call("say", {"path": "-n"}, caller=ME, idempotency_key="order-7")
        output = await house.call("say", {"path": "n"}, caller=ME, idempotency_key="order-7")
        assert (output.ok, output.cached) == (True, False)
        assert await states(house) == [
            ("say", "failed", "invalid_arguments"),
            ("say", "succeeded", ""),
        ]


# Any provider.


class Plain:
    """Refuses the word `no`, once it is to run it."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.ran: list[str] = []

    def unusable(self, spec: ToolSpec) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        self.ran.append(call.spec.name)
        if call.args["word"] == "no":
            raise InvalidArguments(call.spec.name, [("/word", "is no")])
        return "done"


class Choosing(Plain):
    """The same, and says so before."""

    breaks = False

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        self.looked.append(spec.name)
        if self.breaks:
            raise KeyError(args["password"])
        return [("/word", f"is no, for {args['password']}")] if args["word"] == "no" else ()


class Waiting(Plain):
    """Says so as nobody can hear."""

    async def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return ()


def house_of(provider: Provider) -> AbstractAsyncContextManager[Runtime]:
    return in_memory(providers={"own": provider}, journal=MemoryJournal())


def put(house: Runtime, name: str, **fields: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "word": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
        },
        "required": ["word", "password"],
    }
    given = {"name": name, "provider": "own", "config": {}, "input_schema": schema} | fields
    found = {one.name: one for one in house.catalog.part("own")}
    found[name] = read_tool(given, origin=Origin("file", "own.yaml"))
    house.catalog.put("own", list(found.values()))


async def call(house: Runtime, name: str, word: str) -> Output:
    return await house.call(name, {"word": word, "password": "hunter2hunter2"}, caller=ME)


async def test_it_is_asked_only_where_somebody_else_would_be_or_a_call_be_claimed() -> None:
    provider = Choosing()
    async with house_of(provider) as house:
        put(house, "reads", effect="pure")
        put(house, "shown", effect="pure", requires_approval=True)
        put(house, "sets", effect="idempotent")
        put(house, "pays", effect="irreversible")
        for name in ("reads", "shown", "sets", "pays"):
            with pytest.raises(InvalidArguments, match="is no"):
                await call(house, name, "no")
        # What only reads costs nothing twice: it refuses by itself.
        assert (provider.looked, provider.ran) == (["shown", "sets", "pays"], ["reads"])
        assert (await call(house, "pays", "yes")).data == "done"
        assert (await call(house, "shown", "yes")).status == PENDING


async def test_without_the_method_a_provider_refuses_as_it_did() -> None:
    """The guard off: it is the provider that refuses, after the claim."""
    provider = Plain()
    async with house_of(provider) as house:
        put(house, "pays", effect="irreversible")
        with pytest.raises(InvalidArguments):
            await call(house, "pays", "no")
        assert provider.ran == ["pays"]


async def test_schema_and_gate_come_first() -> None:
    provider = Choosing()
    async with house_of(provider) as house:
        put(house, "pays", effect="irreversible")
        with pytest.raises(InvalidArguments, match="required"):
            await house.call("pays", {"word": "no"}, caller=ME)
        assert provider.looked == []


async def test_one_that_breaks_runs_nothing_and_its_words_hold_no_secret() -> None:
    provider = Choosing()
    async with house_of(provider) as house:
        put(house, "pays", effect="irreversible")
        with pytest.raises(InvalidArguments) as refusal:
            await call(house, "pays", "no")
        assert "hunter2" not in f"{refusal.value.message}{refusal.value.details}"
        provider.breaks = True
        with pytest.raises(UnsupportedProvider, match=r"KeyError\). Nothing ran") as broken:
            await call(house, "pays", "yes")
        assert ("hunter2" in broken.value.message, provider.ran) == (False, [])


def test_one_of_another_package_is_heeded_and_must_not_wait() -> None:
    named = {
        name: CustomProvider(use=f"{__name__}:{made}")
        for name, made in (("own", "made_choosing"), ("late", "made_waiting"))
    }
    found = PluggedProviders(named)
    spec = read_tool(
        {"name": "x", "provider": "own", "config": {}, "input_schema": {"type": "object"}},
        origin=Origin("file", "own.yaml"),
    )
    own, late = found.find("own"), found.find("late")
    assert own is not None
    assert late is not None
    assert own.unusable(spec) is None
    assert isinstance(own, Choosy)
    assert own.unfit(spec, {"word": "no", "password": "p"})
    assert "must not wait" in (late.unusable(spec) or "")


def made_choosing(_settings: Mapping[str, str]) -> Choosing:
    return Choosing()


def made_waiting(_settings: Mapping[str, str]) -> Waiting:
    return Waiting()
