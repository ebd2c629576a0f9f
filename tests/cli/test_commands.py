"""Every command, in process: its answer, its JSON, its exit code."""

import importlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from typer.main import get_command

from tests.cli.conftest import Run, as_json
from tests.house import STORE
from toolgate import __version__
from toolgate.cli.init import FILES
from toolgate.cli.main import COMMANDS
from toolgate.configuration import load


def every_command() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, entry in COMMANDS.items():
        command = get_command(importlib.import_module(entry.module).app)
        found.append((name,))
        found.extend((name, inner) for inner in getattr(command, "commands", ()))
    return found


@pytest.mark.req("V5")
def test_there_are_exactly_these_commands() -> None:
    assert [" ".join(one) for one in every_command()] == [
        "init",
        "serve",
        "tools",
        "tools list",
        "tools show",
        "tools enable",
        "tools disable",
        "tools reset",
        "tools export",
        "tenants",
        "tenants list",
        "tenants add",
        "agents",
        "agents list",
        "agents set",
        "agents override",
        "agents remove",
        "roles",
        "roles list",
        "roles set",
        "roles remove",
        "layers",
        "layers list",
        "layers set",
        "layers permit",
        "layers remove",
        "personas",
        "personas list",
        "personas set",
        "personas unset",
        "personas restrict",
        "personas allow",
        "relations",
        "relations list",
        "relations add",
        "relations remove",
        "limits",
        "limits list",
        "limits rate",
        "limits budget",
        "usage",
        "approvals",
        "approvals list",
        "approvals show",
        "approvals approve",
        "approvals deny",
        "policy",
        "policy check",
        "policy test",
        "policy replay",
        "policy list",
        "policy put",
        "policy remove",
        "audit",
        "audit list",
        "audit anchor",
        "audit verify",
        "audit export",
        "keys",
        "keys add",
        "keys list",
        "keys revoke",
        "call",
        "ledger",
        "ledger list",
        "ledger show",
        "ledger undo",
        "ledger settle",
        "ledger again",
        "explain",
        "doctor",
    ]


@pytest.mark.req("V5")
@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_command_has_help_and_those_that_answer_have_json(
    run: Run, command: tuple[str, ...]
) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"toolgate {' '.join(command)}" in result.stdout
    is_group = len(command) == 1 and (*command, "list") in every_command()
    assert "--json" in result.stdout or is_group
    assert "<bool>" not in result.stdout, "a flag takes no value"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_each_module_says(name: str, run: Run) -> None:
    entry = COMMANDS[name]
    module = importlib.import_module(entry.module)
    assert module.app.info.help == entry.about
    assert entry.about in " ".join(run("--help").stdout.replace("│", " ").split())
    assert (module.__doc__ or "").startswith(f"`toolgate {name}")
    command = get_command(module.app)
    assert (command.help or "").strip() == entry.about


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").stdout == f"toolgate {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["tools", "nothing"],
        ["call"],
        ["call", "echo", "--nothing"],
        ["serve", "--port", "70000"],
        ["serve", "--port", "x"],
        ["call", "echo", "--args", "{"],
        ["call", "echo", "--args", "[]"],
        ["call", "echo", "--args", '{"text": "a", "text": "b"}'],
        ["call", "echo", "--args", '{"text": 18446744073709551617}'],
        ["call", "echo", "--tenant", ""],
        ["explain", "echo", "--tenant", ""],
        ["tools", "export", "--format", "xml"],
        ["tools", "export", "--tenant", ""],
        ["keys", "add"],
        ["keys", "add", "--role", "agent"],
        ["keys", "add", "--role", "owner", "--tenant", "acme"],
        ["keys", "add", "--role", "agent", "--tenant", "acme"],
        ["keys", "revoke"],
        ["tools", "list", "--agent", "billing"],
        ["tools", "list", "--role", "clerk"],
        ["tools", "list", "--read-only"],
        ["tools", "enable", "echo", "--agent", "billing"],
        ["tools", "disable", "echo", "--agent", "billing"],
        ["agents", "set", "billing", "--mode", "none"],
        ["roles", "set", "clerk", "--allow", "group:read", "--web"],
        ["personas", "set", "clerk"],
        ["relations", "add"],
        ["policy", "replay", "--since", "yesterday"],
        ["policy", "put", "mine", "no_such.rego"],
        ["audit", "list", "--limit", "0"],
    ],
    ids=" ".join,
)
def test_wrong_usage_says_how_and_ends_with_two(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr
    assert "Traceback" not in result.output
    assert not STORE.exists(), "nothing was opened"


@pytest.mark.parametrize(
    "arguments",
    [
        ["call", "echo", "--args", "{"],
        ["call", "echo", "--tenant", ""],
        ["tools", "export", "--format", "xml"],
        ["tools", "list", "--agent", "billing"],
        ["tools", "enable", "echo", "--agent", "billing"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_json_when_that_was_asked_for(run: Run, arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    error = as_json(result)["error"]
    assert (error["code"], error["retryable"]) == ("wrong_usage", False)
    assert error["message"]


@pytest.mark.req("V5")
def test_init_writes_a_project_that_runs(run: Run, tmp_path: Path) -> None:
    result = run("init", "--json")
    assert (result.exit_code, as_json(result)) == (0, {"written": list(FILES)})
    load(tmp_path / "toolgate.toml", {})
    counted = run("call", "word_count", "--args", '{"text": "one two three"}', "--json")
    assert as_json(counted)["data"] == {"words": 3}
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    again = run("init")
    assert again.exit_code == 2
    assert "exists already; nothing was written" in again.stderr
    assert before == {name: (tmp_path / name).read_bytes() for name in FILES}


def test_the_commented_settings_of_init_are_the_defaults(run: Run, tmp_path: Path) -> None:
    run("init", "project")
    file = tmp_path / "project" / "toolgate.toml"
    text = file.read_text("utf-8")
    lines = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    file.write_text("\n".join(lines), "utf-8")
    assert load(file, {}).model_dump() == load(None, {}).model_dump()


def test_init_where_nothing_can_be_written_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("init", "file/below")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", [*FILES, "tools"])
def test_init_never_writes_through_a_link(run: Run, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    here = tmp_path / "here"
    (here / name).parent.mkdir(parents=True)
    (here / name).symlink_to(target)
    result = run("init", "here")
    assert (result.exit_code, f"{name} exists already" in result.stderr) == (2, True)
    assert not target.exists()
    (here / name).unlink()
    assert run("init", "here").exit_code == 0, "it was the link"


def test_a_link_that_appears_at_the_last_moment_is_not_followed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    (tmp_path / "my_tools.py").symlink_to(target)

    def unseen(_path: object) -> bool:
        return False

    monkeypatch.setattr(os.path, "lexists", unseen)
    result = run("init")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)
    assert not target.exists()


@pytest.mark.req("V5")
def test_tools_list_is_plain_text_in_a_pipe(run: Run) -> None:
    result = run("tools", "list")
    assert result.exit_code == 0
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["name", "category", "effect", "state", "reason", "description"]
    assert len(rows) == 20
    assert "\x1b" not in result.stdout
    states = {row.split()[0]: row.split()[3] for row in rows}
    assert (states["echo"], states["memory_load"]) == ("on", "unusable")


@pytest.mark.req("V5", "C4")
def test_tools_list_for_an_agent_is_what_it_may_call(run: Run) -> None:
    run("tools", "disable", "echo")
    run("tools", "enable", "echo", "--tenant", "acme")
    run("agents", "set", "intern", "--tenant", "acme")
    run("tools", "disable", "timestamp", "--tenant", "acme", "--agent", "intern")
    everyone = {row["name"]: row["state"] for row in as_json(run("tools", "list", "--json"))}
    assert everyone["echo"] == "off"
    mine = as_json(run("tools", "list", "--tenant", "acme", "--agent", "intern", "--json"))
    assert [(row["name"], row["state"]) for row in mine] == [("echo", "on"), ("read_output", "on")]
    theirs = as_json(run("tools", "list", "--tenant", "umbrella", "--json"))
    assert [row["name"] for row in theirs] == ["read_output", "timestamp"]


@pytest.mark.req("V5")
def test_tools_show_tells_the_whole_definition(run: Run) -> None:
    shown = as_json(run("tools", "show", "echo", "--json"))
    assert (shown["name"], shown["state"], shown["effect"]) == ("echo", "on", "pure")
    assert shown["fingerprint"].startswith("sha256:")
    text = run("tools", "show", "echo").stdout
    assert "fingerprint:" in text
    assert "\x1b" not in text


@pytest.mark.req("V5", "G1")
def test_enable_and_disable_reach_everyone_a_tenant_or_one_agent(run: Run) -> None:
    whom = ["--tenant", "acme", "--agent", "billing"]
    said = ["call", "echo", "--args", '{"text": "x"}', *whom]
    assert run(*said).exit_code == 0
    run("agents", "set", "billing", "--tenant", "acme")
    for where, told in (([], "everyone"), (whom[:2], "tenant acme"), (whom, "agent billing")):
        off = run("tools", "disable", "echo", *where)
        assert (off.exit_code, f"echo is off for {told}" in off.stdout) == (0, True)
        assert run(*said).exit_code == 1
        on = run("tools", "enable", "echo", *where, "--json")
        assert as_json(on)["enabled"] is True
        assert run(*said).exit_code == 0


@pytest.mark.req("S6")
def test_switching_off_and_on_keeps_what_an_agent_has_to_ask_for(run: Run, tmp_path: Path) -> None:
    whom = ["--tenant", "acme", "--agent", "billing"]
    run("tools", "enable", "echo", *whom)
    with closing(sqlite3.connect(tmp_path / STORE)) as connection:
        asks = '{"requires_confirmation": true}'
        connection.execute("UPDATE tool_activations SET policy_overrides = ?", (asks,))
        connection.commit()
    said = ["call", "echo", "--args", '{"text": "x"}', *whom, "--json"]
    assert as_json(run(*said))["error"]["code"] == "approval_pending"
    run("tools", "disable", "echo", *whom)
    assert as_json(run(*said))["error"]["code"] == "tool_not_found"
    run("tools", "enable", "echo", *whom)
    assert as_json(run(*said))["error"]["code"] == "approval_pending"


@pytest.mark.req("V5", "C3")
@pytest.mark.parametrize("format_", ["openai", "anthropic", "mcp", "toolgate", "prompt"])
def test_export_speaks_every_format(run: Run, format_: str) -> None:
    told = as_json(run("tools", "export", "--format", format_, "--json"))
    assert "echo" in str(told)
    assert "builtin" not in str(told)
    plain = run("tools", "export", "--format", format_).stdout
    assert plain.startswith("### echo" if format_ == "prompt" else "[")


@pytest.mark.req("V5", "X1")
def test_call_answers_and_a_failure_ends_with_one(run: Run) -> None:
    told = run("call", "echo", "--args", '{"text": "hi"}', "--turn", "t-1", "--user", "ann")
    assert (told.exit_code, orjson.loads(told.stdout)) == (0, {"text": "hi"})
    failed = run("call", "timestamp", "--args", f'{{"format": "{"x" * 70}"}}')
    assert (failed.exit_code, failed.stdout.startswith("tool_error: ")) == (1, True)
    failed = run("call", "timestamp", "--args", f'{{"format": "{"x" * 70}"}}', "--json")
    assert (failed.exit_code, as_json(failed)["ok"]) == (1, False)


@pytest.mark.req("V5", "X5")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["call", "no_such_tool"], "tool_not_found"),
        (["call", "memory_load", "--args", '{"query": "x"}'], "tool_not_found"),
        (["call", "echo"], "invalid_arguments"),
        (["call", "echo", "--args", '{"text": 3}'], "invalid_arguments"),
        (["tools", "show", "no_such_tool"], "tool_not_found"),
        (["tools", "enable", "no_such_tool"], "tool_not_found"),
        (["tools", "enable", "echo", "--tenant", "Acme Corp"], "invalid_request"),
        (["tools", "enable", "echo", "--tenant", "acme", "--agent", "Bo b"], "invalid_request"),
        (["keys", "revoke", "key_none"], "invalid_request"),
        (["keys", "add", "--role", "admin", "--tenant", "nobody"], "invalid_request"),
        (["keys", "add", "--role", "admin", "--tenant", "No Body", "--create"], "invalid_request"),
        (["keys", "list", "--config", "no_such.toml"], "settings_invalid"),
        (["tools", "list", "--config", "no_such.toml"], "settings_invalid"),
        (["call", "echo", "--config", "no_such.toml"], "settings_invalid"),
        (["explain", "echo", "--config", "no_such.toml"], "settings_invalid"),
        (["serve", "--config", "no_such.toml"], "settings_invalid"),
        (["policy", "check", "--config", "no_such.toml"], "settings_invalid"),
        (["policy", "test", "--path", "no_such_folder"], "invalid_policy"),
        (["policy", "test", "no_such_cases.yaml"], "invalid_policy"),
        (["policy", "replay", "--path", "no_such_folder"], "invalid_policy"),
        (["policy", "remove", "nothing"], "invalid_request"),
        (["tenants", "add", "Acme Corp"], "invalid_request"),
        (["agents", "remove", "nobody"], "invalid_request"),
        (["layers", "set", "safe", "--deny", "group:reed"], "invalid_request"),
        (["layers", "permit", "safe", "echo"], "invalid_request"),
        (["layers", "permit", "safe", "no_such_tool"], "tool_not_found"),
        (["layers", "remove", "safe"], "invalid_request"),
        (["roles", "remove", "clerk"], "invalid_request"),
        (["personas", "restrict", "clerk", "no_such_tool"], "invalid_request"),
        (["relations", "add", "nonsense"], "invalid_request"),
        (["audit", "list", "--tenant", "Acme Corp"], "invalid_request"),
        (["tenants", "add", "acme", "--why", "two\nlines"], "invalid_request"),
    ],
)
def test_a_refusal_ends_with_one_in_words_and_in_json(
    run: Run, arguments: list[str], code: str
) -> None:
    said = run(*arguments)
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr.startswith(f"{code}: ")
    told = run(*arguments, "--json")
    assert told.exit_code == 1
    assert as_json(told)["error"]["code"] == code


@pytest.mark.req("V5", "G6")
def test_explain_says_why_and_what_would_change_it(run: Run) -> None:
    yes = run("explain", "echo", "--json")
    assert (yes.exit_code, as_json(yes)["allowed"]) == (0, True)
    run("tools", "disable", "echo", "--tenant", "demo", "--agent", "assistant")
    no = run("explain", "echo")
    assert no.exit_code == 1
    assert "Agent assistant of demo may not call echo" in no.stdout
    remedy = "toolgate tools enable echo --tenant demo --agent assistant"
    assert f"To allow it: {remedy}" in no.stdout
    told = run("explain", "echo", "--json")
    assert told.exit_code == 1
    assert as_json(told)["verdicts"][1]["remedy"] == remedy
    missing = run("explain", "no_such_tool", "--json")
    assert (missing.exit_code, as_json(missing)["verdicts"][0]["rule"]) == (1, "missing")


@pytest.mark.req("V5")
def test_doctor_finds_every_part_fine_or_says_what_to_do(run: Run, tmp_path: Path) -> None:
    run("tools", "list")
    fine = run("doctor", "--json")
    assert fine.exit_code == 0
    parts = [finding["part"] for finding in as_json(fine)]
    expected = ["python", "settings", "store", "source", "source", "tools", "policy", "keys"]
    assert parts == expected
    assert run("doctor").stdout.startswith("ok   python")

    (tmp_path / "toolgate.toml").write_text("[servr]\nport = 1\n", "utf-8")
    bad = run("doctor")
    assert bad.exit_code == 1
    assert "toolgate.toml:1" in bad.stdout
    assert "did you mean 'server'?" in bad.stdout
    assert as_json(run("doctor", "--json"))[-1]["fine"] is False

    (tmp_path / "toolgate.toml").unlink()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bad.yaml").write_text("tools: [{name: x, efect: pure}]", "utf-8")
    bad = run("doctor", "--json")
    assert bad.exit_code == 1
    [finding] = [one for one in as_json(bad) if not one["fine"]]
    assert finding["part"] == "catalog"
    assert "Did you mean effect?" in finding["says"]

    (tmp_path / "tools" / "bad.yaml").unlink()
    (tmp_path / STORE).write_bytes(b"this is no database" * 100)
    bad = run("doctor", "--json")
    assert bad.exit_code == 1
    assert [one["part"] for one in as_json(bad) if not one["fine"]] == ["store"]


def test_the_settings_file_of_this_folder_is_found(run: Run, tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text('[tools]\nbuiltin = ["echo"]\n', "utf-8")
    assert [row["name"] for row in as_json(run("tools", "list", "--json"))] == ["echo"]
    other = tmp_path / "other.toml"
    other.write_text('[tools]\nbuiltin = ["timestamp"]\n', "utf-8")
    listed = as_json(run("tools", "list", "--json", "--config", str(other)))
    assert [row["name"] for row in listed] == ["timestamp"]
