"""Wrong usage ends with two and a refusal with one, in words and in JSON."""

import pytest

from tests.cli.conftest import Run, as_json
from tests.house import STORE


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
        # What is found before any command runs.
        ["nothing"],
        ["--nothing"],
        ["call"],
        ["call", "echo", "--nothing"],
        ["keys", "lst"],
        ["keys"],
        # A server, and no key for it.
        ["keys", "list", "--url", "http://127.0.0.1:1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_json_when_that_was_asked_for(run: Run, arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    error = as_json(result)["error"]
    assert (error["code"], error["retryable"]) == ("wrong_usage", False)
    assert error["message"]


@pytest.mark.parametrize(("typed", "meant"), [("cal", "call"), ("keyz", "keys")])
def test_a_misspelt_command_is_told_the_nearest_one(run: Run, typed: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in run(typed).stderr
    assert f"Did you mean '{meant}'?" in as_json(run(typed, "--json"))["error"]["message"]
    assert "Did you mean" not in run("zzzzzz").stderr


@pytest.mark.req("V5", "X5")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["call", "no_such_tool"], "tool_not_found"),
        (["call", "echo"], "invalid_arguments"),
        (["call", "echo", "--args", '{"text": 3}'], "invalid_arguments"),
        (["tools", "show", "no_such_tool"], "tool_not_found"),
        (["tools", "enable", "no_such_tool"], "tool_not_found"),
        (["tools", "enable", "echo", "--tenant", "Acme Corp"], "invalid_request"),
        (["tools", "enable", "echo", "--tenant", "acme", "--agent", "Bo b"], "invalid_request"),
        (["keys", "revoke", "key_none"], "invalid_request"),
        (["approvals", "show", "apr_none"], "approval_not_found"),
        (["approvals", "approve", "apr_none"], "approval_not_found"),
        (["approvals", "deny", "apr_none"], "approval_not_found"),
        (["ledger", "show", "call_none"], "call_not_found"),
        (["keys", "add", "--role", "admin", "--tenant", "nobody"], "invalid_request"),
        (["keys", "add", "--role", "admin", "--tenant", "No Body", "--create"], "invalid_request"),
        (["keys", "list", "--config", "no_such.toml"], "settings_invalid"),
        (["tools", "list", "--config", "no_such.toml"], "settings_invalid"),
        (["call", "echo", "--config", "no_such.toml"], "settings_invalid"),
        (["explain", "echo", "--config", "no_such.toml"], "settings_invalid"),
        (["explain", "echo", "--tenant", "Acme"], "invalid_request"),
        (["explain", "echo", "--agent", "my bot"], "invalid_request"),
        (["call", "echo", "--args", '{"text": "x"}', "--tenant", "Acme"], "invalid_request"),
        (["tools", "list", "--tenant", "Acme"], "invalid_request"),
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
