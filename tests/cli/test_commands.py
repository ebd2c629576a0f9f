"""Every command is in the table with its help, and those about calls and settings answer."""

import importlib
from pathlib import Path

import orjson
import pytest
from typer.main import get_command

from tests.cli.conftest import Run, as_json
from tests.house import STORE
from toolgate import __version__
from toolgate.cli.main import COMMANDS


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
        "worker",
        "stdio",
        "tools",
        "tools list",
        "tools search",
        "tools show",
        "tools enable",
        "tools disable",
        "tools reset",
        "tools import",
        "tools reload",
        "tools export",
        "servers",
        "servers list",
        "servers show",
        "servers add",
        "servers remove",
        "servers test",
        "servers diff",
        "servers approve",
        "plugins",
        "plugins list",
        "plugins show",
        "plugins approve",
        "plugins reload",
        "plugins new",
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
        "keys rotate",
        "keys revoke",
        "call",
        "ledger",
        "ledger list",
        "ledger show",
        "ledger undo",
        "ledger settle",
        "ledger again",
        "queue",
        "queue show",
        "queue dead",
        "queue retry",
        "queue discard",
        "explain",
        "store",
        "store show",
        "store accept",
        "migrate",
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
    is_group = any(len(one) == 2 and one[:1] == command for one in every_command())
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
    assert (command.help or "").strip().split("\n\n")[0] == entry.about


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").stdout == f"toolgate {__version__}\n"


@pytest.mark.req("V5", "X1")
def test_call_answers_and_a_failure_ends_with_one(run: Run) -> None:
    told = run("call", "echo", "--args", '{"text": "hi"}', "--turn", "t-1", "--user", "ann")
    assert (told.exit_code, orjson.loads(told.stdout)) == (0, {"text": "hi"})
    failed = run("call", "timestamp", "--args", f'{{"format": "{"x" * 70}"}}')
    assert (failed.exit_code, failed.stderr.startswith("tool_error: ")) == (1, True)
    failed = run("call", "timestamp", "--args", f'{{"format": "{"x" * 70}"}}', "--json")
    assert (failed.exit_code, as_json(failed)["ok"]) == (1, False)


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
    house = ["python", "settings", "store", "source", "source", "tools", "policy", "keys"]
    beside = ["open files", "disk", "sandbox", "clock"]
    beside += ["relations", "cache", "events", "telemetry", "auth"]
    assert parts == [*house, *beside]
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
