"""`tools enable` and `disable`: what they leave as it is, and that off always works."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools

MINE = "tools: [{name: mine, config: {builtin: timestamp}, effect: pure}]"
BAD = "tools: [{name: x, efect: pure}]"


def state(run: Run, name: str) -> str:
    return {row["name"]: row["state"] for row in as_json(run("tools", "list", "--json"))}[name]


@pytest.mark.req("V5")
@pytest.mark.parametrize("bad", [BAD, MINE, "{"], ids=["bad field", "name clash", "no YAML"])
def test_a_bad_file_does_not_block_the_switch(run: Run, tmp_path: Path, bad: str) -> None:
    write_tools(tmp_path, MINE)
    run("agents", "set", "billing", "--tenant", "acme")
    run("tools", "enable", "echo", "--tenant", "acme")
    write_tools(tmp_path, bad, name="bad.yaml")
    assert run("tools", "list").exit_code == 1, "nothing else works meanwhile"
    told = run("tools", "disable", "mine")
    assert told.exit_code == 0
    assert told.stdout.startswith("mine is off for everyone.\n")
    assert "nobody checked that there is a tool of this name" in told.stdout
    assert "toolgate doctor" in told.stdout
    known = run("tools", "disable", "echo")
    assert known.exit_code == 0
    assert "nobody checked" not in known.stdout, "a built-in is known without any file"
    for whom in (["--tenant", "acme"], ["--tenant", "acme", "--agent", "billing"]):
        off = as_json(run("tools", "disable", "mine", *whom, "--json"))
        assert (off["enabled"], len(off["notes"])) == (False, 1)
    assert run("tools", "disable", "not a name").stderr.startswith("tool_not_found: ")

    (tmp_path / "tools" / "bad.yaml").unlink()
    assert (state(run, "mine"), state(run, "echo")) == ("off", "off")
    assert run("call", "mine", "--tenant", "acme", "--agent", "billing").exit_code == 1


@pytest.mark.req("V5")
def test_enable_says_that_a_tool_still_cannot_run(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, "tools: [{name: away, config: {builtin: from_a_later_version}}]")
    told = run("tools", "enable", "away").stdout.splitlines()
    assert told == [
        "away is on for everyone.",
        "It still cannot run: its implementation is not part of this version.",
    ]
    assert run("tools", "disable", "away").stdout.count("\n") == 1


@pytest.mark.req("V5", "G6")
def test_enable_says_where_a_tool_stays_off(run: Run) -> None:
    run("agents", "set", "billing", "--tenant", "acme")
    run("agents", "set", "intern", "--tenant", "umbrella")
    run("tools", "disable", "echo", "--tenant", "acme")
    run("tools", "disable", "echo", "--tenant", "umbrella", "--agent", "intern")
    notes = as_json(run("tools", "enable", "echo", "--json"))["notes"]
    wins = "It stays off for tenant acme; a tenant's own flag wins: "
    stays = "It stays off for agent intern of umbrella: "
    remedy = "toolgate tools enable echo --tenant NAME"
    assert notes == [wins + remedy, stays + remedy + " --agent NAME"]
    theirs = as_json(run("tools", "enable", "echo", "--tenant", "umbrella", "--json"))["notes"]
    assert theirs == [stays + remedy + " --agent NAME"]
    one = run("tools", "enable", "echo", "--tenant", "acme", "--agent", "billing").stdout
    assert "It still may not be called: switched off for tenant 'acme'." in one
    assert "To allow it: toolgate tools enable echo --tenant acme" in one
    run("tools", "enable", "echo", "--tenant", "acme")
    assert run("tools", "enable", "echo", "--tenant", "acme", "--agent", "billing").stdout == (
        "echo is on for agent billing of acme.\n"
    )


@pytest.mark.req("V5")
def test_disable_says_where_a_tool_stays_on(run: Run) -> None:
    for number in range(7):
        run("tools", "enable", "echo", "--tenant", f"t{number}")
    told = run("tools", "disable", "echo").stdout
    assert "It stays on for tenant t0, tenant t1, tenant t2, tenant t3, tenant t4" in told
    assert "and 2 others; a tenant's own flag wins" in told
    assert "toolgate tools disable echo --tenant NAME" in told
