"""What an explanation proposes really helps: each command is run as it is printed."""

import asyncio
import shlex
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.gate.case import Case, by_note, put, read_cases, write_house
from toolgate import Caller, Toolgate
from toolgate.cli.main import app
from toolgate.errors import PermissionDenied
from toolgate.gate.decision import Explanation
from toolgate.tenancy.capsule import Mode

# What an operator can do with one command; the others need another file, other code, or a caller
# that asks otherwise. What an operator chose by a selector no command can know.
_COMMANDS = (
    *("registry/enabled", "registry/tool_flag", "registry/tenant_flag"),
    *("capsule/not_listed", "capsule/switched_off", "capsule/removed", "relations/no_execute"),
    *("policy/global", "policy/role:", "policy/persona"),
)
# Of those that one rule decides, so many.
_EACH = 2
# A name that no record can hold has no such command.
_NOBODYS = {
    "an empty role is one that nobody has defined",
    "a role that holds a command is only a name",
    "a space at the end makes nobody that a relation can name",
    "a NUL in a user's name ends nothing",
    "SQL in a user's name is a name",
    "a user that calls itself a member of a group is none",
}


def by_command() -> list[Case]:
    seen: Counter[str] = Counter()
    found: list[Case] = []
    for case in read_cases():
        denies = any(":" in one or "*" in one for layer in case.layers for one in layer.deny)
        if case.want != "hide" or case.policy.data or case.policy.rego or denies:
            continue
        if case.why.startswith(_COMMANDS) and case.note not in _NOBODYS:
            seen[case.why] += 1
            if seen[case.why] <= _EACH:
                found.append(case)
    return found


async def prepare(root: Path, case: Case) -> Explanation:
    async with Toolgate.open(write_house(root, case)) as house:
        await put(house.tenancy, case)
        return await house.explain(case.tool, caller=case.who(), args=case.args)


async def explained(root: Path, case: Case) -> Explanation:
    async with Toolgate.open(root / "toolgate.toml") as house:
        return await house.explain(case.tool, caller=case.who(), args=case.args)


async def called(root: Path, case: Case) -> str:
    async with Toolgate.open(root / "toolgate.toml") as house:
        return (await house.call(case.tool, case.args, caller=case.who())).status


@pytest.mark.req("G6")
@pytest.mark.parametrize("case", by_command(), ids=by_note)
def test_running_the_remedies_really_allows_it(case: Case, tmp_path: Path) -> None:
    found = asyncio.run(prepare(tmp_path, case))
    assert not found.allowed
    # Each phase that refuses names its own; layers and personas are told one at a time.
    for _ in range(6):
        program, *command = shlex.split(found.remedies[0])
        assert program == "toolgate"
        done = CliRunner().invoke(app, [*command, "--config", str(tmp_path / "toolgate.toml")])
        assert done.exit_code == 0, done.output
        found = asyncio.run(explained(tmp_path, case))
        if found.allowed:
            break
    assert found.allowed, found
    assert asyncio.run(called(tmp_path, case)) in {"success", "pending_approval"}


@pytest.mark.req("G5", "G6")
def test_the_remedy_for_an_unknown_role_grants_one_tool_and_no_more(tmp_path: Path) -> None:
    note = "a role that nobody has defined means no where others are"
    case = next(case for case in read_cases() if case.note == note)
    remedy = asyncio.run(prepare(tmp_path, case)).deciding.remedy
    assert "known here: worker)" in remedy
    assert "group:all" not in remedy
    program, *command = shlex.split(remedy.rpartition(": ")[2])
    assert (program, command[:2]) == ("toolgate", ["roles", "set"])
    done = CliRunner().invoke(app, [*command, "--config", str(tmp_path / "toolgate.toml")])
    assert done.exit_code == 0, done.output
    assert asyncio.run(explained(tmp_path, case)).allowed
    assert asyncio.run(called(tmp_path, case)) == "success"
    case.tool = "pay"
    other = asyncio.run(explained(tmp_path, case))
    assert (other.allowed, other.deciding.rule) == (False, "role:made_up")


@pytest.mark.req("G6")
@pytest.mark.parametrize(
    "case", [case for case in read_cases() if case.note in _NOBODYS], ids=by_note
)
def test_for_a_name_that_no_record_can_hold_no_command_is_printed(
    case: Case, tmp_path: Path
) -> None:
    """Whoever pasted it would run what the caller chose to be called."""
    found = asyncio.run(prepare(tmp_path, case))
    assert "toolgate " not in found.deciding.remedy
    assert found.deciding.remedy.startswith("Call ")


@pytest.mark.req("G6")
def test_a_name_with_signs_of_a_shell_is_one_word_of_the_command(tmp_path: Path) -> None:
    whole = next(case for case in read_cases() if case.note == "nobody is related to anything")
    whole.caller.user = "ann;touch${IFS}owned`id`'\""
    found = asyncio.run(prepare(tmp_path, whole))
    words = shlex.split(found.deciding.remedy)
    assert words[3] == f"tool:pay#executor@user:{whole.caller.user}"
    assert shlex.join(words) == found.deciding.remedy
    done = CliRunner().invoke(app, [*words[1:], "--config", str(tmp_path / "toolgate.toml")])
    assert done.exit_code == 0, done.output
    assert asyncio.run(explained(tmp_path, whole)).allowed


@pytest.mark.req("G2", "G6")
@pytest.mark.parametrize("persona", ["clerk", "no such name; rm"])
async def test_adding_names_its_remedy_too(gate: Toolgate, persona: str) -> None:
    caller = Caller(tenant="acme", persona=persona)
    spec = gate.catalog.current.specs["echo"]
    with pytest.raises(PermissionDenied):
        await gate.gate.add(caller, spec)
    if persona == "clerk":
        await gate.tenancy.set_persona(persona, can_add_tools=True)
        await gate.gate.add(caller, spec)


async def test_a_remedy_that_is_a_hint_names_a_command_that_exists(gate: Toolgate) -> None:
    remedy = (await gate.explain("missing", caller=Caller(tenant="acme"))).deciding.remedy
    _, _, command = remedy.partition("toolgate ")
    assert CliRunner().invoke(app, [*shlex.split(command), "--help"]).exit_code == 0
    assert "--" not in command


@pytest.mark.req("G6")
async def test_explain_goes_on_after_the_first_refusal(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="billing")
    await gate.tenancy.set_tool("echo", enabled=False)
    await gate.tenancy.set_agent("acme", "billing", Mode.LISTED)
    found = await gate.explain("echo", caller=caller)
    assert [(one.phase, one.allowed) for one in found.verdicts] == [
        ("registry", False),
        ("capsule", False),
        ("relations", True),
        ("policy", True),
        ("policy", True),
        ("policy", True),
    ]
    assert len(found.remedies) == 2
