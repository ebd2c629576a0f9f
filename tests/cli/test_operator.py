"""The command line speaks to the operator: reasons, near misses, and what is not well."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.house import STORE
from toolgate.store import migrate

BROKEN = """\
tools:
  - {name: broken, config: {module: no_such_module, function: f}, effect: pure}
  - {name: abroad, provider: nowhere, effect: pure}
"""
CAREFUL = "tools: [{name: careful, config: {builtin: timestamp}, requires_approval: true}]"
# A port that nobody listens on, and nobody may.
AWAY = '[tools]\nurls = ["http://127.0.0.1:1/tools.json"]\n'


@pytest.mark.req("V5")
def test_doctor_finds_tools_of_ones_own_that_cannot_run(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, BROKEN)
    told = run("doctor", "--json")
    assert told.exit_code == 1
    bad = [one for one in as_json(told) if not one["fine"]]
    assert [(one["part"], one["says"].split(" ")[0]) for one in bad] == [
        ("tool", "abroad"),
        ("tool", "broken"),
    ]
    assert "tools/mine.yaml" in bad[1]["says"]
    assert "module 'no_such_module' cannot be imported" in bad[1]["says"]
    assert "BAD  tool        broken" in run("doctor").stdout


def test_doctor_makes_no_store_to_look_at(run: Run, tmp_path: Path) -> None:
    told = run("doctor", "--json")
    assert told.exit_code == 0
    store = as_json(told)[2]
    assert (store["part"], store["says"]) == ("store", "not made yet; the first start makes it")
    assert [one["part"] for one in as_json(told)[3:7]] == ["source", "source", "tools", "policy"]
    assert list(tmp_path.iterdir()) == []
    run("tools", "list")
    parts = [one["part"] for one in as_json(run("doctor", "--json"))]
    assert "keys" in parts, "what is there is looked at"


def test_doctor_upgrades_no_store_to_look_at(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("tools", "list")
    # As a later version of toolgate finds what this one made.
    monkeypatch.setattr(migrate, "VERSION", "9999")
    before = (tmp_path / STORE).read_bytes()
    told = run("doctor", "--json")
    assert (told.exit_code, as_json(told)[2]["says"]) == (
        0,
        "an older version; the next start upgrades it",
    )
    assert (tmp_path / STORE).read_bytes() == before


def test_doctor_names_only_so_many_of_them(run: Run, tmp_path: Path) -> None:
    lines = [f"  - {{name: t{n:02}, provider: nowhere, effect: pure}}" for n in range(23)]
    write_tools(tmp_path, "\n".join(["tools:", *lines]))
    run("tools", "list")
    told = run("doctor").stdout
    assert told.count("no provider 'nowhere'") == 20
    assert "3 more cannot run; see toolgate tools list" in told


def test_one_thing_is_not_called_many(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, CAREFUL)
    run("tools", "enable", "echo", "--tenant", "acme", "--agent", "billing")
    told = run("doctor").stdout
    assert "1 tenant\n" in told
    assert "files: 1 tool\n" in told


@pytest.mark.req("V5")
def test_an_unusable_tool_is_listed_and_shown_with_the_reason(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, BROKEN)
    rows = {row["name"]: row for row in as_json(run("tools", "list", "--json"))}
    assert rows["echo"]["reason"] == ""
    assert rows["abroad"]["reason"] == "no provider 'nowhere' is available"
    [line] = [one for one in run("tools", "list").stdout.splitlines() if one.startswith("abroad")]
    assert line.split(None, 3)[2:] == ["unusable", "no provider 'nowhere' is available"]
    assert as_json(run("tools", "show", "abroad", "--json"))["reason"] == rows["abroad"]["reason"]


def test_tools_show_prints_json_values_and_no_python(run: Run) -> None:
    told = dict(line.split(None, 1) for line in run("tools", "show", "echo").stdout.splitlines())
    assert told["destructive:"] == "false"
    assert told["side_effects:"] == '["read_only"]'
    assert told["config:"] == '{"builtin": "echo"}'
    assert told["description:"].startswith("Echo text back")


@pytest.mark.parametrize("command", ["show", "enable", "disable"])
def test_a_misspelt_tool_is_told_the_nearest_one(run: Run, command: str) -> None:
    told = run("tools", command, "ehco")
    assert told.exit_code == 1
    assert told.stderr == (
        "tool_not_found: There is no tool 'ehco' in the catalog. Did you mean 'echo'?\n"
    )
    far = run("tools", command, "x" * 500)
    assert "See which there are: toolgate tools list" in far.stderr
    assert len(far.stderr) < 200


@pytest.mark.req("G6")
def test_a_call_of_a_hidden_tool_says_where_the_reason_is(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, "tools: [{name: hidden, config: {module: nowhere, function: f}}]")
    hidden = ["call", "hidden"]
    told = run(*hidden, "--agent", "billing")
    caller, hint = told.stderr.splitlines()
    assert "hidden" in caller
    assert "in the catalog" not in caller, "the caller's own sentence stays as it is"
    assert hint == "`toolgate explain hidden --agent billing` says why."
    assert run(*hint.split("`")[1].split()[1:]).exit_code == 1
    assert as_json(run(*hidden, "--json"))["error"]["code"] == "tool_not_found"
    missing = run("call", "ehco").stderr.splitlines()[1]
    assert missing == "There is no tool 'ehco' in the catalog. Did you mean 'echo'?"


@pytest.mark.req("S6", "G6")
def test_explain_says_that_a_person_must_approve(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, CAREFUL)
    told = run("explain", "careful")
    assert told.exit_code == 0
    said = "Agent assistant of demo may call careful, and a person must approve each call: "
    assert told.stdout.startswith(said)
    assert as_json(run("explain", "careful", "--json"))["needs_a_person"] is True
    assert as_json(run("explain", "echo", "--json"))["needs_a_person"] is False
    run("tools", "disable", "careful")
    assert "may not call careful: " in run("explain", "careful").stdout, "nobody is asked then"


@pytest.mark.req("C1")
def test_a_source_that_does_not_answer_is_warned_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text(AWAY, "utf-8")
    told = run("tools", "list", "--json")
    assert told.exit_code == 0
    assert as_json(told), "what there is, is listed"
    [warning] = told.stderr.splitlines()
    assert warning.startswith("warning: source http://127.0.0.1:1/tools.json is unhealthy")


def test_help_says_what_a_tenant_without_an_agent_means(run: Run) -> None:
    told = " ".join(run("tools", "list", "--help").stdout.replace("│", " ").split())
    assert "without --agent, by an agent that has no capsule of its own" in told


@pytest.mark.req("V5")
def test_the_store_is_not_looked_at_for_who_names_a_server(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("store", "show").exit_code == 0
    for command in (("store", "show"), ("store", "accept", "--why", "seen")):
        told = run(*command, "--url", "http://127.0.0.1:1")
        assert (told.exit_code, "works on the store itself" in told.stderr) == (2, True)
        with monkeypatch.context() as patch:
            patch.setenv("TOOLGATE_URL", "http://127.0.0.1:1")
            told = run(*command)
        assert (told.exit_code, told.stdout) == (2, "")
