"""`toolgate tools` lists, shows, switches and exports what there is for whom."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.house import STORE
from toolgate.tools.table import table

FEW = '["echo", "read_output", "timestamp"]'


@pytest.mark.req("V5")
def test_tools_list_is_plain_text_in_a_pipe(run: Run, tmp_path: Path) -> None:
    write_tools(
        tmp_path, "tools: [{name: away, category: mine, config: {module: nowhere, function: f}}]"
    )
    result = run("tools", "list")
    assert result.exit_code == 0
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["name", "category", "effect", "state", "reason", "description"]
    assert len(rows) == len(table()) + 1
    assert "\x1b" not in result.stdout
    states = {row.split()[0]: row.split()[3] for row in rows}
    assert (states["echo"], states["away"]) == ("on", "unusable")


@pytest.mark.req("V5", "C4")
def test_tools_list_for_an_agent_is_what_it_may_call(run: Run, tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text(f"[tools]\nbuiltin = {FEW}\n", "utf-8")
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
def test_export_speaks_every_format(run: Run, tmp_path: Path, format_: str) -> None:
    (tmp_path / "toolgate.toml").write_text(f"[tools]\nbuiltin = {FEW}\n", "utf-8")
    told = as_json(run("tools", "export", "--format", format_, "--json"))
    assert "echo" in str(told)
    assert "builtin" not in str(told)
    plain = run("tools", "export", "--format", format_).stdout
    assert plain.startswith("### echo" if format_ == "prompt" else "[")
