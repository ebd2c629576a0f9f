"""A list given twice, a name nobody has heard of, and policies that cannot be read."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json
from toolgate.cli import meant

pytestmark = pytest.mark.req("V5")
BROKEN = "package toolgate\n\ndeny contains if {\n"
RULE = 'package toolgate\n\nbanned["never"] contains "nobody may" if true\n'
EXECUTOR = "tool:echo#executor@user:ann"


def test_a_list_is_given_by_commas_or_again(run: Run) -> None:
    denied = ["--deny", "echo", "--deny", "timestamp,group:web"]
    layer = as_json(run("layers", "set", "x", *denied, "--allow", "a*", "--allow", "b*", "--json"))
    assert layer["deny"] == ["echo", "timestamp", "group:web"]
    assert layer["allow"] == ["a*", "b*"]
    may = ["--categories", "data", "--categories", "math,code", "--tools", "echo", "--tools"]
    more = ["timestamp", "--forbid", "echo", "--forbid", "timestamp"]
    role = as_json(run("roles", "set", "clerk", *may, *more, "--json"))
    categories = ["category:data!web", "category:math!web", "category:code!web"]
    assert role["allow"] == ["echo", "timestamp", *categories]
    assert role["deny"] == ["echo", "timestamp"]
    wide = run("roles", "set", "boss", "--allow", "group:read", "--allow", "group:data", "--json")
    assert as_json(wide)["allow"] == ["group:read", "group:data"]


def test_a_layer_that_allows_nothing_says_so(run: Run) -> None:
    run("layers", "set", "shut", "--allow", "")
    assert "(nothing)" in run("layers", "list").stdout


@pytest.mark.req("G3")
def test_who_administers_can_while_policies_cannot_be_read(run: Run, tmp_path: Path) -> None:
    run("agents", "set", "billing", "--tenant", "acme")
    (tmp_path / "mine.rego").write_text(RULE, "utf-8")
    assert run("policy", "put", "mine", "mine.rego").exit_code == 0
    (tmp_path / "policies").mkdir()
    bad = tmp_path / "policies" / "bad.rego"
    bad.write_text(BROKEN, "utf-8")
    asked = [
        *(["layers", "set", "x", "--deny", "echo"], ["layers", "permit", "x", "echo"]),
        *(["layers", "list"], ["layers", "remove", "x"]),
        *(["roles", "set", "r", "--tools", "echo"], ["roles", "list"], ["roles", "remove", "r"]),
        *(["personas", "restrict", "p", "echo"], ["personas", "list"]),
        *(["agents", "list"], ["agents", "set", "a"], ["agents", "remove", "a"]),
        *(["tenants", "list"], ["tenants", "add", "umbrella"], ["keys", "list"], ["audit", "list"]),
        *(["keys", "add", "--role", "admin", "--tenant", "acme"], ["tools", "reset", "echo"]),
        *(["relations", "add", EXECUTOR], ["relations", "list"], ["relations", "remove", EXECUTOR]),
        *(["tools", "list"], ["tools", "show", "echo"]),
        *(["policy", "list"], ["policy", "remove", "mine"]),
    ]
    for arguments in asked:
        told = run(*arguments)
        assert told.exit_code == 0, (arguments, told.output)
        assert told.stderr.startswith("warning: The policy files cannot be read"), arguments
        assert told.stderr.count("\n") == 1
    decide = [
        *(["call", "echo"], ["explain", "echo"], ["tools", "list", "--tenant", "acme"]),
        *(["tools", "export"], ["policy", "replay"], ["policy", "put", "mine", "mine.rego"]),
    ]
    for arguments in decide:
        told = run(*arguments)
        assert (told.exit_code, told.stderr[:14]) == (1, "invalid_policy"), arguments
    bad.unlink()
    assert run("layers", "list").stderr == ""


def test_a_tool_or_an_agent_that_is_misspelt_is_explained_with_the_nearest(run: Run) -> None:
    run("agents", "set", "billing", "--tenant", "acme")
    tool = run("explain", "ehco", "--tenant", "acme", "--agent", "billing")
    assert tool.exit_code == 1
    assert "Did you mean 'echo'? Check the name with: toolgate tools list" in tool.stdout
    unlike = run("explain", "zzzzzz", "--tenant", "acme", "--agent", "billing")
    assert "To allow it: Check the name with: toolgate tools list" in unlike.stdout
    asked = ["explain", "echo", "--tenant", "acme", "--json", "--agent"]
    said = {
        agent: str(as_json(run(*asked, agent))["verdicts"])
        for agent in ("biling", "other", "billing")
    }
    assert "nobody has set up 'biling'. Did you mean 'billing'?" in said["biling"]
    assert all("nobody has set up" not in said[agent] for agent in ("other", "billing"))


def test_switching_off_for_nobody_is_refused_with_the_nearest(run: Run) -> None:
    run("agents", "set", "billing", "--tenant", "acme")
    before = len(as_json(run("audit", "list", "--json")))
    off = run("tools", "disable", "echo", "--tenant", "acmee")
    assert off.exit_code == 1
    assert "There is no tenant 'acmee' on record; nothing was changed." in off.stderr
    assert "Did you mean 'acme'?" in off.stderr
    agent = run("tools", "disable", "echo", "--tenant", "acme", "--agent", "biling")
    assert (agent.exit_code, "Did you mean 'billing'?" in agent.stderr) == (1, True)
    assert run("tools", "reset", "echo", "--tenant", "nope").exit_code == 1
    assert len(as_json(run("audit", "list", "--json"))) == before
    whom = ["--tenant", "acme", "--agent", "billing"]
    assert run("tools", "disable", "echo", *whom).exit_code == 0
    # Whom commands mean when nobody is named is no typo.
    assert run("tools", "disable", "echo", "--tenant", "demo").stdout.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["tools", "enable", "echo"],
        ["relations", "add", EXECUTOR],
        ["roles", "set", "clerk", "--tools", "echo"],
        ["layers", "set", "x", "--deny", "echo"],
        ["agents", "set", "billing"],
    ],
    ids=lambda given: given[0],
)
def test_a_tenant_that_a_change_puts_on_record_is_told(run: Run, arguments: list[str]) -> None:
    told = run(*arguments, "--tenant", "nope")
    assert told.exit_code == 0
    assert "Tenant 'nope' was not on record; it is now." in told.stdout
    assert "on record; it is now" not in run(*arguments, "--tenant", "nope").stdout
    notes = as_json(run(*arguments, "--tenant", "other", "--json"))["notes"]
    assert "Tenant 'other' was not on record; it is now." in notes


def test_a_name_that_no_tool_has_is_refused_or_told(run: Run) -> None:
    denied = run("layers", "set", "x", "--deny", "ehco")
    assert (denied.exit_code, "Did you mean 'echo'?" in denied.stderr) == (1, True)
    forbidden = run("roles", "set", "clerk", "--forbid", "ehco")
    assert (forbidden.exit_code, "Did you mean 'echo'?" in forbidden.stderr) == (1, True)
    allowed = run("layers", "set", "x", "--allow", "ehco,group:read")
    assert allowed.exit_code == 0
    assert "No tool is called 'ehco' so far. Did you mean 'echo'?" in allowed.stdout
    assert "'ehco'" in run("roles", "set", "clerk", "--tools", "ehco").stdout


def test_a_key_with_a_role_that_nobody_defined_is_told(run: Run) -> None:
    asked = ["keys", "add", "--role", "agent", "--tenant", "a", "--agent", "b", "--create"]
    assert run(*asked, "--has-role", "clrek").stderr == ""
    run("roles", "set", "clerk", "--tools", "echo")
    told = run(*asked, "--has-role", "clrek")
    assert told.exit_code == 0
    assert "Role 'clrek' is not on record" in told.stderr
    assert "Did you mean 'clerk'?" in told.stderr
    assert run(*asked, "--has-role", "clerk").stderr == ""


def test_doctor_does_not_call_settings_fine_that_are_not(run: Run, tmp_path: Path) -> None:
    assert "ok   settings" in run("doctor").stdout
    (tmp_path / "toolgate.toml").write_text('[policy]\nengine = "opa"\n', "utf-8")
    told = run("doctor").stdout
    assert "BAD  settings" in told
    assert "ok   settings" not in told


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["keys", "create"], "Did you mean 'add'?"),
        (["keys", "delete", "x"], "Did you mean 'revoke'?"),
        (["agents", "add", "x"], "Did you mean 'set'?"),
        (["plugins", "create", "x"], "Did you mean 'new'?"),
        (["tools", "lst"], "Did you mean 'list'?"),
        (["keys", "polish"], "There are: add, list, rotate, revoke."),
        (["undo", "x"], "Did you mean 'ledger undo'?"),
        (["version"], "Did you mean '--version'?"),
        (["srve"], "Did you mean 'serve'?"),
    ],
)
def test_a_command_by_another_word_is_told_by_ours(run: Run, words: list[str], hint: str) -> None:
    told = run(*words)
    assert told.exit_code == 2
    assert hint in " ".join(told.stderr.split())
    assert hint in as_json(run(*words, "--json"))["error"]["message"]


def test_every_word_that_is_told_is_a_command(run: Run) -> None:
    for word in sorted(set(meant.ABOVE.values())):
        assert run(*word.split(), *([] if word == "--version" else ["--help"])).exit_code == 0, word
    assert run("ledger", "undid", "--help").exit_code == 2


def test_a_key_for_nobody_is_told_how_to_be_for_somebody(run: Run) -> None:
    asked = ["keys", "add", "--role", "agent", "--tenant", "acme", "--agent", "billing"]
    assert "--create" in run(*asked).stderr
    assert "--create" not in run(*asked, "--create", "--expires", "soon").stderr
    run("tenants", "add", "acme")
    late = run("keys", "add", "--role", "operator", "--tenant", "acme", "--expires", "soon")
    assert (late.exit_code, "--create" in late.stderr) == (1, False)


def test_who_is_not_on_record_is_told_where_a_tool_is_explained(run: Run) -> None:
    run("agents", "set", "billing", "--tenant", "acme")
    whole = run("explain", "echo", "--tenant", "acme", "--agent", "billing")
    assert (whole.exit_code, whole.stderr) == (0, "")
    agent = run("explain", "echo", "--tenant", "acme", "--agent", "biling")
    told = "There is no agent 'biling' of tenant 'acme' on record; it has what everyone has."
    hint = "; nobody has set up 'biling'. Did you mean 'billing'?"
    assert agent.exit_code == 0
    assert agent.stdout.replace(hint, "") == whole.stdout.replace("billing", "biling")
    assert agent.stderr == f"warning: {told} Did you mean 'billing'?\n"
    tenant = run("explain", "echo", "--tenant", "amce", "--agent", "billing")
    assert "There is no tenant 'amce' on record" in tenant.stderr
    assert run("explain", "echo").stderr == "", "the first start makes those that nobody names"
