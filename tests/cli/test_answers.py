"""What a person at the command line reads, and what it tells them to do next."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.undo.served import stocked

pytestmark = pytest.mark.req("V5")
MODULE = '''\
"""Tools that are cut off."""

import asyncio


async def poem():
    yield "Roses are red\\n"
    await asyncio.Event().wait()
'''
TOOLS = """\
tools:
  - {name: poem, config: {module: cut_off_tools, function: poem}, effect: pure, timeout: 0.2}
  - {name: asks, config: {builtin: timestamp}, effect: irreversible, requires_approval: true}
"""


@pytest.fixture
def cli(run: Run, tmp_path: Path) -> Run:
    write_tools(tmp_path, TOOLS)
    (tmp_path / "cut_off_tools.py").write_text(MODULE, "utf-8")
    return run


def test_what_there_is_of_a_partial_result_is_shown_with_the_error(cli: Run) -> None:
    told = cli("call", "poem")
    assert told.exit_code == 1
    assert "Roses are red" in told.stdout
    assert "timed_out: " in told.stderr
    assert "timed_out" not in told.stdout


def test_a_call_that_waits_for_a_person_names_the_command(cli: Run) -> None:
    asked = cli("call", "asks")
    assert asked.stdout == "", "it is no answer yet"
    told = asked.stderr.splitlines()
    id_ = as_json(cli("approvals", "list", "--json"))[0]["id"]
    assert told[-2:] == [
        f"To look at it: toolgate approvals show {id_}",
        f"To agree: toolgate approvals approve {id_}",
    ]
    wrong = cli("approvals", "approve", id_, "--seen", "0" * 12)
    assert (wrong.exit_code, "is not the code" in wrong.stderr) == (1, True)
    assert cli("approvals", "approve", id_).exit_code == 0


@pytest.mark.req("S3")
def test_a_call_whose_end_is_unknown_names_its_id(run: Run, tmp_path: Path) -> None:
    stocked(tmp_path)
    told = run("call", "mail", "--args", '{"to": "nobody"}', "--tenant", "acme", "--agent", "a")
    [lost] = as_json(run("ledger", "list", "--tenant", "acme", "--json"))
    assert lost["state"] == "unknown"
    last = told.stderr.splitlines()[-1]
    command = f"toolgate ledger show {lost['call_id']} --tenant acme"
    assert last == f"What is on record of it: {command}"
    assert run(*command.split()[1:]).exit_code == 0


@pytest.mark.parametrize(
    ("more", "whose"),
    [
        (["--tenant", "demo", "--tool", "echo"], "of tool echo of tenant demo."),
        (["--tool", "echo", "--persona", "boss"], "of tool echo of persona boss of each tenant."),
        (["--tenant", "demo"], "of tenant demo."),
    ],
    ids=["tool", "persona", "tenant"],
)
def test_a_limit_is_told_with_what_it_is_of(run: Run, more: list[str], whose: str) -> None:
    assert run("limits", "rate", "2/minute", *more).stdout == f"At most 2/minute pass, {whose}\n"
    for nothing in ("none", "null"):
        assert as_json(run("limits", "rate", nothing, *more, "--json"))["limit"] is None


@pytest.mark.parametrize("most", ["-5", "-.5", "-5e3"])
def test_a_budget_below_zero_is_told_as_that(run: Run, most: str) -> None:
    told = run("limits", "budget", "money", most, "--tenant", "demo")
    assert (told.exit_code, "it cannot be negative" in told.stderr) == (2, True)
    told = run("limits", "budget", "money", most, "--tenant", "demo", "--json")
    assert as_json(told)["error"]["code"] == "wrong_usage"


@pytest.mark.req("O2")
@pytest.mark.parametrize("anchor", ["banana", "1:", "1:zz", "x:" + "0" * 64])
def test_what_is_no_anchor_is_wrong_usage(run: Run, anchor: str) -> None:
    told = run("audit", "verify", "--anchor", anchor)
    assert (told.exit_code, "is no anchor" in told.stderr) == (2, True)
    run("tenants", "add", "acme")
    kept = as_json(run("audit", "anchor", "--json"))[0]
    assert run("audit", "verify", "--anchor", f"{kept['number']}:{kept['hash']}").exit_code == 0
    assert run("audit", "verify", "--anchor", f"1:{'0' * 64}").exit_code == 1


def test_a_list_of_the_audit_is_not_wider_than_a_screen(run: Run) -> None:
    run("layers", "set", "x", "--deny", "echo", "--tenant", "acme", "--why", "no")
    told = run("audit", "list").stdout
    assert "set_layer" in told
    assert max(map(len, told.splitlines())) <= 140


def test_agents_are_listed_with_what_they_do_about_newer_messages(run: Run) -> None:
    run("agents", "set", "a", "--newer-messages", "absorb")
    assert "absorb" in run("agents", "list").stdout


@pytest.mark.parametrize("command", [("approvals", "show"), ("ledger", "show")], ids=" ".join)
def test_help_shows_no_name_of_a_variable(run: Run, command: tuple[str, ...]) -> None:
    assert "id_" not in run(*command, "--help").stdout
