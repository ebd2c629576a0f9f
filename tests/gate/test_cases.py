"""Every decision of the two phases, from `cases.yaml`, at every place that decides."""

import asyncio
import shlex
from pathlib import Path

import msgspec
import orjson
import pytest
import yaml
from typer.testing import CliRunner

from tests.gate.world import ARGS, put_capsule, put_flags, write_tools
from tests.house import open_gate
from toolgate import Caller, CallRefused, Toolgate
from toolgate.cli.main import app
from toolgate.errors import ToolNotFound
from toolgate.tenancy.capsule import Mode


class Flags(msgspec.Struct, forbid_unknown_fields=True):
    everyone: dict[str, bool] = {}
    tenants: dict[str, dict[str, bool]] = {}


class Capsule(msgspec.Struct, forbid_unknown_fields=True):
    mode: Mode
    tools: dict[str, bool] = {}


class Who(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str = "acme"
    agent: str = "billing"


class Case(msgspec.Struct, forbid_unknown_fields=True):
    note: str
    tool: str
    want: bool
    why: str
    flags: Flags = msgspec.field(default_factory=Flags)
    capsules: dict[str, Capsule] = {}
    caller: Who = msgspec.field(default_factory=Who)


_FILE = Path(__file__).with_name("cases.yaml")
CASES = msgspec.convert(yaml.safe_load(_FILE.read_text("utf-8"))["cases"], list[Case])
# What an operator can do with one command; the others need another file or other code.
BY_COMMAND = [
    case
    for case in CASES
    if not case.want
    and case.why.split("/")[1]
    in {"enabled", "tool_flag", "tenant_flag", "not_listed", "switched_off"}
    and case.caller.tenant == case.caller.tenant.lower()
]


def by_note(case: Case) -> str:
    return case.note


async def put(gate: Toolgate, case: Case) -> None:
    await put_flags(gate, case.flags.everyone, case.flags.tenants)
    for whose, capsule in case.capsules.items():
        await put_capsule(gate, whose, capsule.mode, capsule.tools)


async def may_call(gate: Toolgate, caller: Caller, tool: str) -> bool:
    refusal: CallRefused | None = None
    try:
        assert (await gate.call(tool, ARGS, caller=caller)).data == ARGS
    except CallRefused as raised:
        refusal = raised
    if refusal is None:
        return True
    # Hidden and missing are one: in type, in code, in words.
    missing = ToolNotFound(tool)
    assert (type(refusal), str(refusal)) == (type(missing), str(missing))
    assert refusal.details == missing.details
    return False


@pytest.mark.req("G1", "G6", "C4")
@pytest.mark.parametrize("case", CASES, ids=by_note)
async def test_a_case_is_decided_as_it_says_wherever_it_is_asked(
    case: Case, tmp_path: Path
) -> None:
    write_tools(tmp_path)
    caller = Caller(tenant=case.caller.tenant, agent=case.caller.agent)
    async with open_gate(tmp_path) as gate:
        await put(gate, case)
        explained = gate.explain(case.tool, caller=caller)
        box = gate.toolbox(caller)

        deciding = explained.deciding
        assert (explained.allowed, f"{deciding.phase}/{deciding.rule}") == (case.want, case.why)
        assert deciding.reason
        assert case.want or deciding.remedy
        assert (case.tool in {spec.name for spec in await gate.discover(caller)}) is case.want
        assert await may_call(gate, caller, case.tool) is case.want
        assert box.is_available(case.tool) is case.want
        assert (box.definition(case.tool) is not None) is case.want
        lacking = {one.name: one for one in box.unavailable()}
        assert (case.tool in lacking) is (deciding.phase == "capsule" and not case.want)
        if case.tool in lacking:
            assert lacking[case.tool].reason == deciding.reason


@pytest.mark.req("G6")
@pytest.mark.parametrize("case", BY_COMMAND, ids=by_note)
def test_running_the_remedy_really_allows_it(case: Case, tmp_path: Path) -> None:
    write_tools(tmp_path)
    config = ["--config", str(tmp_path / "toolgate.toml")]
    whom = ["--tenant", case.caller.tenant, "--agent", case.caller.agent]
    cli = CliRunner()

    async def prepare() -> None:
        async with open_gate(tmp_path) as gate:
            await put(gate, case)

    asyncio.run(prepare())
    refused = cli.invoke(app, ["call", case.tool, "--args", '{"text": "hello"}', *config, *whom])
    assert refused.exit_code == 1
    # Each phase that refuses names its own remedy, so two commands are the most.
    for _ in range(2):
        answer = cli.invoke(app, ["explain", case.tool, *config, *whom, "--json"])
        explained = orjson.loads(answer.stdout)
        if explained["allowed"]:
            break
        remedy = next(one["remedy"] for one in explained["verdicts"] if not one["allowed"])
        program, *command = shlex.split(remedy)
        assert program == "toolgate"
        assert cli.invoke(app, [*command, *config]).exit_code == 0
    allowed = cli.invoke(app, ["call", case.tool, "--args", '{"text": "hello"}', *config, *whom])
    assert allowed.exit_code == 0, allowed.output


async def test_a_remedy_that_is_a_hint_names_a_command_that_exists(gate: Toolgate) -> None:
    remedy = gate.explain("missing", caller=Caller(tenant="acme")).deciding.remedy
    _, _, command = remedy.partition("toolgate ")
    assert CliRunner().invoke(app, [*shlex.split(command), "--help"]).exit_code == 0
    assert "--" not in command


async def test_explain_goes_on_after_the_first_refusal(tmp_path: Path) -> None:
    write_tools(tmp_path)
    caller = Caller(tenant="acme", agent="billing")
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_tool("plain", enabled=False)
        await gate.tenancy.set_agent("acme", "billing", Mode.LISTED)
        verdicts = gate.explain("plain", caller=caller).verdicts
    assert [(one.phase, one.allowed) for one in verdicts] == [
        ("registry", False),
        ("capsule", False),
    ]
