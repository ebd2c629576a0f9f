"""What an operator changes at the command line: it counts, it is shown, and it is signed."""

import getpass
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools

EXECUTOR = "tool:echo#executor@user:ann"
# Each with the change that the audit calls it.
CHANGES: list[tuple[list[str], str]] = [
    (["tenants", "add", "acme"], "add_tenant"),
    (["agents", "set", "billing", "--tenant", "acme", "--mode", "listed"], "set_agent"),
    (["tools", "disable", "echo"], "set_tool_flag"),
    (["tools", "reset", "echo"], "set_tool_flag"),
    (["tools", "enable", "echo", "--tenant", "acme"], "set_tenant_flag"),
    (["tools", "reset", "echo", "--tenant", "acme"], "set_tenant_flag"),
    (["tools", "enable", "echo", "--tenant", "acme", "--agent", "billing"], "set_activation"),
    (["agents", "override", "billing", "echo", "--tenant", "acme", "--approval"], "set_activation"),
    (["tenants", "add", "acme", "--plan", "starter"], "set_plan"),
    (["limits", "budget", "money", "12.5", "--tenant", "acme"], "set_budget"),
    (["limits", "budget", "money", "none", "--tenant", "acme"], "set_budget"),
    (["limits", "rate", "600/minute", "--tenant", "acme", "--tool", "echo"], "set_rate_limit"),
    (["limits", "rate", "none", "--tenant", "acme", "--tool", "echo"], "set_rate_limit"),
    (["keys", "add", "--role", "agent", "--tenant", "acme", "--agent", "billing"], "add_key"),
    (["roles", "set", "clerk", "--categories", "data"], "set_layer"),
    (["layers", "set", "safe", "--deny", "group:web"], "set_layer"),
    (["layers", "permit", "safe", "echo"], "set_layer"),
    (["personas", "set", "guest", "--cannot-add-tools"], "set_persona"),
    (["personas", "unset", "guest"], "set_persona"),
    (["personas", "restrict", "guest", "echo", "--reason", "no guests"], "set_restriction"),
    (["relations", "add", EXECUTOR, "--tenant", "acme"], "set_relations"),
    (["policy", "put", "mine", "mine.rego"], "set_policy_module"),
    (["policy", "remove", "mine"], "set_policy_module"),
    (["relations", "remove", EXECUTOR, "--tenant", "acme"], "set_relations"),
    (["personas", "allow", "guest", "echo"], "set_restriction"),
    (["layers", "remove", "safe"], "set_layer"),
    (["roles", "remove", "clerk"], "set_layer"),
    (["agents", "remove", "billing", "--tenant", "acme"], "remove_agent"),
]


@pytest.mark.req("V5", "O2")
def test_every_change_is_on_record_with_who_and_why(run: Run, tmp_path: Path) -> None:
    rule = 'package toolgate\n\nbanned["x"] contains "no" if true\n'
    (tmp_path / "mine.rego").write_text(rule, "utf-8")
    for number, (arguments, change) in enumerate(CHANGES):
        why = f"reason {number}"
        more = ["--why", why, *(["--json"] if number % 2 else [])]
        told = run(*arguments, *more)
        assert told.exit_code == 0, told.output
        [last, *_] = as_json(run("audit", "list", "--limit", "1", "--json"))
        assert (last["who"], last["why"]) == (f"cli:{getpass.getuser()}", why), arguments
        assert last["change"] == change
    [key, *_] = [
        one for one in as_json(run("audit", "list", "--json")) if one["change"] == "add_key"
    ]
    assert "digest" not in str(key["details"])
    table = run("audit", "list", "--limit", "1").stdout.splitlines()
    assert table[0].split() == ["when", "who", "change", "tenant", "details", "why"]
    assert table[1].endswith(f"reason {len(CHANGES) - 1}")
    theirs = as_json(run("audit", "list", "--tenant", "acme", "--json"))
    assert {one["tenant"] for one in theirs} == {"acme"}


@pytest.mark.req("O2")
def test_a_revoked_key_is_on_record_too(run: Run) -> None:
    asked = ["--role", "agent", "--tenant", "acme", "--agent", "billing", "--create"]
    made = as_json(run("keys", "add", *asked, "--why", "new", "--json"))
    assert {one["why"] for one in as_json(run("audit", "list", "--json"))} == {"new"}
    assert run("keys", "revoke", made["id"], "--why", "lost").exit_code == 0
    [last] = as_json(run("audit", "list", "--limit", "1", "--json"))
    assert (last["why"], last["tenant"], made["id"] in str(last["details"])) == (
        "lost",
        "acme",
        True,
    )


@pytest.mark.req("V5")
def test_lists_show_what_was_said(run: Run) -> None:
    run("agents", "set", "billing", "--tenant", "acme", "--mode", "listed")
    run("tools", "enable", "echo", "--tenant", "acme", "--agent", "billing")
    assert as_json(run("tenants", "list", "--json")) == [{"id": "acme", "agents": 1}]
    assert as_json(run("agents", "list", "--tenant", "acme", "--json")) == [
        {
            "id": "billing",
            "mode": "listed",
            "newer_messages": "supersede",
            "on": ["echo"],
            "off": [],
            "asks": {},
        }
    ]
    assert run("agents", "list", "--tenant", "acme").stdout.splitlines()[1].split() == [
        "billing",
        "listed",
        "supersede",
        "echo",
    ]
    run("layers", "set", "safe", "--deny", "group:web, timestamp", "--tenant", "acme")
    [layer] = as_json(run("layers", "list", "--json"))
    assert (layer["tenant"], layer["deny"], layer["allow"]) == (
        "acme",
        ["group:web", "timestamp"],
        None,
    )
    assert "(everybody)" in run("layers", "list").stdout
    told = run("layers", "permit", "safe", "timestamp", "--tenant", "acme").stdout
    assert told == (
        "Layer safe of everybody in acme leaves timestamp, unless it is among group:web.\n"
    )
    run("roles", "set", "clerk", "--tools", "echo", "--forbid", "timestamp")
    assert as_json(run("roles", "list", "--json")) == [{"role": "clerk", "tenant": "", "layers": 1}]
    assert run("roles", "set", "nobody").stdout == "Role nobody may use: nothing.\n"
    run("personas", "restrict", "guest", "echo", "--reason", "no guests")
    assert as_json(run("personas", "list", "--json")) == [
        {"id": "guest", "can_add_tools": None, "kept_from": {"echo": "no guests"}}
    ]
    assert "(nobody has said)" in run("personas", "list").stdout
    run("relations", "add", EXECUTOR, "--tenant", "acme")
    assert run("relations", "list", "--tenant", "acme").stdout == f"{EXECUTOR}\n"
    assert as_json(run("relations", "list", "--tenant", "umbrella", "--json")) == []


@pytest.mark.req("G1", "S6")
def test_an_agent_can_be_made_to_ask_and_a_switch_be_taken_back(run: Run) -> None:
    said = ["call", "echo", "--args", '{"text": "x"}', "--json"]
    told = run("agents", "override", "assistant", "echo", "--confirmation")
    assert told.stdout == "Agent assistant of demo asks with echo for requires_confirmation.\n"
    assert as_json(run(*said))["error"]["code"] == "approval_pending"
    [agent] = as_json(run("agents", "list", "--json"))
    assert agent["asks"] == {"echo": ["requires_confirmation"]}
    run("tools", "disable", "echo", "--agent", "assistant", "--tenant", "demo")
    run("agents", "override", "assistant", "echo")
    assert as_json(run(*said))["error"]["code"] == "tool_not_found", "it stays off"
    run("tools", "enable", "echo", "--agent", "assistant", "--tenant", "demo")
    assert as_json(run(*said))["ok"] is True
    run("tools", "disable", "echo", "--tenant", "demo")
    assert run(*said).exit_code == 1
    told = run("tools", "reset", "echo", "--tenant", "demo")
    assert told.stdout == "Tenant demo has no switch of its own for echo any more.\n"
    assert run(*said).exit_code == 0
    run("tools", "disable", "echo")
    assert run("tools", "reset", "echo").stdout.startswith("echo is as its definition has it")
    assert run(*said).exit_code == 0


@pytest.mark.req("G4", "G5", "C4")
def test_a_list_for_a_caller_is_what_that_caller_may_call(run: Run, tmp_path: Path) -> None:
    write_tools(
        tmp_path,
        """\
tools:
  - {name: look, config: {builtin: timestamp}, effect: pure}
  - {name: pay, config: {builtin: timestamp}, effect: irreversible}
  - name: fetch
    config: {builtin: timestamp}
    effect: pure
    side_effects: [network_access]
""",
    )
    run("roles", "set", "clerk", "--allow", "look")
    run("roles", "set", "boss", "--allow", "group:all")
    run("personas", "restrict", "guest", "look")

    def listed(*more: str) -> set[str]:
        rows = as_json(run("tools", "list", "--tenant", "acme", *more, "--json"))
        names = {row["name"] for row in rows}
        for name in ("look", "pay", "fetch"):
            assert run("explain", name, "--tenant", "acme", "--agent", "", *more).exit_code == (
                0 if name in names else 1
            )
        return names & {"look", "pay", "fetch"}

    assert listed() == {"look", "pay", "fetch"}
    assert listed("--role", "clerk") == {"look"}
    assert listed("--role", "boss", "--user", "ann") == {"look", "pay", "fetch"}
    assert listed("--role", "boss", "--role", "stranger") == set()
    assert listed("--persona", "guest") == {"pay", "fetch"}
    assert listed("--read-only") == {"look", "fetch"}
    assert listed("--no-web") == {"look", "pay"}
    shown = run("tools", "export", "--format", "prompt", "--tenant", "acme", "--role", "clerk")
    assert ("### look" in shown.stdout, "### pay" in shown.stdout) == (True, False)


@pytest.mark.req("G6")
def test_explain_lists_every_remedy_and_each_of_them_works(run: Run) -> None:
    whom = ["--persona", "guest", "--role", "clerk"]
    run("tools", "disable", "echo")
    run("layers", "set", "narrow", "--allow", "timestamp", "--role", "clerk", "--reason", "narrow")
    run("personas", "restrict", "guest", "echo", "--reason", "no guests")
    told = run("explain", "echo", *whom)
    assert told.exit_code == 1
    heading, remedies = told.stdout.split("To allow it, all of these:\n")
    assert heading.startswith("Agent assistant of demo may not call echo: ")
    assert "no guests" in heading
    listed = remedies.splitlines()
    assert len(listed) == 3
    assert as_json(run("explain", "echo", *whom, "--json"))["remedies"] == [
        line.strip() for line in listed
    ]
    for remedy in listed:
        assert run("explain", "echo", *whom).exit_code == 1
        program, *arguments = remedy.split()
        assert (program, run(*arguments).exit_code) == ("toolgate", 0)
    assert run("explain", "echo", *whom).exit_code == 0


@pytest.mark.req("G6")
def test_a_refused_call_says_how_to_ask_why(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    rule = 'package toolgate\n\nrestrict contains "not that" if input.args.text == "that"\n'
    (tmp_path / "policies" / "mine.rego").write_text(rule, "utf-8")
    assert run("call", "echo", "--args", '{"text": "this"}').exit_code == 0
    refused = run("call", "echo", "--args", '{"text": "that"}')
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == "policy: not that"
    run("personas", "restrict", "guest", "echo")
    hidden = run("call", "echo", "--persona", "guest", "--user", "ann", "--read-only")
    hint = hidden.stderr.splitlines()[-1]
    assert hint == "`toolgate explain echo --user ann --persona guest --read-only` says why."
    assert run(*hint.split("`")[1].split()[1:]).exit_code == 1


BROKEN = "package toolgate\n\ndeny contains if {\n"


@pytest.mark.req("V5", "G3")
def test_the_off_switches_work_also_when_policies_cannot_be_read(run: Run, tmp_path: Path) -> None:
    asked = ["--role", "agent", "--tenant", "acme", "--agent", "billing", "--create"]
    made = as_json(run("keys", "add", *asked, "--json"))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "bad.rego").write_text(BROKEN, "utf-8")
    assert run("tools", "list", "--tenant", "acme").exit_code == 1, "nothing can be called"
    off = run("tools", "disable", "echo", "--why", "at once")
    assert off.exit_code == 0
    assert off.stdout.startswith("echo is off for everyone.\nThe policies cannot be read")
    assert "toolgate policy check" in off.stdout
    assert run("keys", "revoke", made["id"], "--why", "lost").exit_code == 0
    write_tools(tmp_path, "tools: [{name: x, efect: pure}]")
    both = run("tools", "disable", "mine").stdout
    assert "nobody checked that there is a tool" in both
    assert "The policies cannot be read" in both
    (tmp_path / "policies" / "bad.rego").unlink()
    (tmp_path / "tools" / "mine.yaml").unlink()
    assert as_json(run("keys", "list", "--json")) == []
    assert [one["why"] for one in as_json(run("audit", "list", "--limit", "3", "--json"))] == [
        "",
        "lost",
        "at once",
    ]
