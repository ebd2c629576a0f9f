"""`toolgate keys`: made for who is on record, shown once, and shut for good."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json
from tests.house import STORE, open_gate
from tests.server.serving import Serving
from toolgate.cli.greeting import Greeting, greet
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.first import FirstKeys
from toolgate.tenancy.keys import digest

FOR_BILLING = ["--role", "agent", "--tenant", "acme", "--agent", "billing"]


@pytest.mark.req("V3", "V5")
def test_a_key_opens_the_server_until_it_is_revoked(run: Run, tmp_path: Path) -> None:
    made = as_json(run("keys", "add", *FOR_BILLING, "--create", "--json"))
    with Serving(tmp_path) as server:
        assert server.greeting["keys"] is None, "there is a key already"
        assert server.get("/v1/tools", made["secret"]).status == 200
    assert run("keys", "revoke", made["id"]).stdout == f"{made['id']} opens nothing any more.\n"
    with Serving(tmp_path) as server:
        assert server.get("/v1/tools", made["secret"]).status == 401


@pytest.mark.req("V3")
def test_a_secret_is_shown_once_and_a_digest_never(run: Run, tmp_path: Path) -> None:
    told = run("keys", "add", *FOR_BILLING, "--create")
    sentence, secret = told.stdout.splitlines()
    assert "is a key of agent billing of acme" in sentence
    assert secret.startswith("tg_agent_")
    admin = as_json(run("keys", "add", "--role", "admin", "--tenant", "acme", "--json"))
    rows = as_json(run("keys", "list", "--json"))
    assert [(row["role"], row["tenant"], row["agent"]) for row in rows] == [
        ("admin", "acme", ""),
        ("agent", "acme", "billing"),
    ]
    fields = {"id", "role", "tenant", "agent", "user", "persona", "roles"}
    fields |= {"created", "expires", "last_used"}
    assert all(row.keys() == fields for row in rows)
    listed = run("keys", "list").stdout + run("keys", "list", "--json").stdout
    for hidden in (secret, admin["secret"]):
        assert hidden not in listed
        assert digest(hidden) not in listed
        assert hidden.encode() not in (tmp_path / STORE).read_bytes()
    assert admin["id"] in listed
    assert as_json(run("keys", "revoke", admin["id"], "--force", "--json"))["revoked"] is True
    assert admin["id"] not in run("keys", "list").stdout


@pytest.mark.req("V3")
def test_a_key_is_only_made_for_who_is_on_record(run: Run) -> None:
    told = run("keys", "add", *FOR_BILLING)
    assert told.exit_code == 1
    assert "no agent 'billing' of tenant 'acme' on record" in told.stderr
    assert "--create" in told.stderr
    assert as_json(run("keys", "list", "--json")) == []
    assert run("keys", "add", *FOR_BILLING, "--create").exit_code == 0
    assert run("keys", "add", *FOR_BILLING).exit_code == 0
    other = ["keys", "add", "--role", "admin", "--tenant", "umbrella"]
    assert run(*other).exit_code == 1
    assert run(*other, "--create").exit_code == 0


@pytest.mark.req("G1")
def test_a_new_key_does_not_widen_what_its_agent_may_call(run: Run, tmp_path: Path) -> None:

    async def listed() -> None:
        async with open_gate(tmp_path) as gate:
            await gate.tenancy.set_agent("acme", "billing", Mode.LISTED)

    asyncio.run(listed())
    assert run("keys", "add", *FOR_BILLING, "--create").exit_code == 0
    whom = ["--tenant", "acme", "--agent", "billing", "--json"]
    assert as_json(run("tools", "list", *whom)) == []


@pytest.mark.req("V3", "V5")
def test_a_key_is_rotated_and_the_old_one_ends(run: Run, tmp_path: Path) -> None:
    made = as_json(run("keys", "add", *FOR_BILLING, "--create", "--expires", "30d", "--json"))
    assert made["expires"] is not None
    both = as_json(run("keys", "rotate", made["id"], "--overlap", "7d", "--json"))
    only = as_json(run("keys", "rotate", both["id"], "--overlap", "0", "--json"))
    assert (both["replaces"], only["replaces"]) == (made["id"], both["id"])
    told = run("keys", "rotate", both["id"])
    assert (told.exit_code, "no key" in told.stderr) == (1, True), "it has ended"
    with Serving(tmp_path) as server:
        opened = [
            server.get("/v1/tools", one["secret"]).status == 200 for one in (made, both, only)
        ]
        assert opened == [True, False, True]
    listed = as_json(run("keys", "list", "--json"))
    assert {row["id"] for row in listed} == {made["id"], only["id"]}
    assert all(row["last_used"] for row in listed), "written when the server ended"
    sentence, secret = run("keys", "rotate", only["id"]).stdout.splitlines()
    assert f"takes the place of {only['id']}" in sentence
    assert secret.startswith("tg_agent_")


@pytest.mark.req("V5")
def test_an_end_that_is_none_is_told(run: Run) -> None:
    told = run("keys", "add", *FOR_BILLING, "--create", "--expires", "soon")
    assert (told.exit_code, "is no time" in told.stderr) == (1, True)


def test_an_old_secret_without_an_overlap_is_told_to_open_nothing(run: Run) -> None:
    made = as_json(run("keys", "add", "--role", "admin", "--tenant", "acme", "--create", "--json"))
    told = run("keys", "rotate", made["id"], "--overlap", "0").stdout
    assert f"{made['id']}, which opens nothing any more." in told
    assert "until" not in told


def test_the_last_key_of_an_admin_is_revoked_on_purpose_only(run: Run) -> None:
    add = ["keys", "add", "--role", "admin", "--tenant", "acme", "--create", "--json"]
    first, second = as_json(run(*add))["id"], as_json(run(*add))["id"]
    run("keys", "add", "--role", "agent", "--tenant", "acme", "--agent", "a", "--create")
    assert run("keys", "revoke", first).exit_code == 0
    refused = run("keys", "revoke", second)
    assert (refused.exit_code, "the last key of an admin" in refused.stderr) == (1, True)
    assert second in run("keys", "list").stdout
    assert run("keys", "revoke", second, "--force").exit_code == 0
    assert second not in run("keys", "list").stdout


def test_a_later_start_says_how_to_make_a_key(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = "http://127.0.0.1:8700"
    greet(Greeting(at, "", FirstKeys(admin="tg_admin_x", agent="tg_agent_x")), json=False)
    assert "keys add" not in capsys.readouterr().out, "the first start shows its own"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [".venv/bin/toolgate", "serve"])
    greet(Greeting(at, "", None), json=False)
    told = capsys.readouterr().out
    [line] = [line for line in told.splitlines() if "keys add" in line]
    program, *words = line.split()
    assert program == ".venv/bin/toolgate"
    assert "tg_agent_" in run(*words).stdout
