"""`toolgate ledger`, and once-only calls, at the command line."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from tests.house import open_gate
from tests.undo.served import done, stocked
from toolgate.cli.main import app


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return stocked(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def told(*arguments: str, code: int = 0) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return orjson.loads(result.stdout)


@pytest.mark.req("S2", "V5")
def test_a_call_with_a_key_runs_once(root: Path) -> None:
    asked = ("call", "mail", "--args", '{"to": "ann"}', "--idempotency-key", "k1", "--wait", "1")
    assert not told(*asked)["cached"]
    assert told(*asked)["cached"]
    assert done(root) == ["mail:ann"]
    assert told(*asked[:-1], "-1", code=1)["error"]["code"] == "invalid_request"


@pytest.mark.req("S4", "V5")
def test_what_was_done_is_listed_shown_and_taken_back(root: Path) -> None:
    ids = [
        told("call", "pay", "--args", f'{{"amount": {amount}}}', "--turn", "g")["call_id"]
        for amount in (1, 2)
    ]
    mail = told("call", "mail", "--args", '{"to": "ann"}', "--turn", "g")["call_id"]
    listed = told("ledger", "list", "--turn", "g")
    assert [one["call_id"] for one in listed] == [mail, *ids[::-1]]
    assert [one["tool"] for one in told("ledger", "list", "--tool", "mail")] == ["mail"]
    table = run("ledger", "list").stdout
    assert ids[0] in table
    assert "succeeded" in table
    unsaid = run("ledger", "undo", ids[1])
    assert (unsaid.exit_code, "--why" in unsaid.output) == (2, True)
    two = run("ledger", "undo", ids[1], "--turn", "g", "--why", "a mistake")
    assert (two.exit_code, "one of them" in two.output) == (2, True)
    report = told("ledger", "undo", "--turn", "g", "--why", "a mistake", code=1)
    assert [one["result"] for one in report["items"]] == ["cannot", "undone", "undone"]
    assert done(root)[-2:] == ["refund:p2", "refund:p1"]
    shown = run("ledger", "show", ids[0]).stdout
    assert "compensated" in shown
    assert "taken back by" in shown
    assert "irreversible" in run("ledger", "undo", "--turn", "g", "--why", "again").stdout
    assert run("ledger", "undo").exit_code == 2
    nothing = told("ledger", "undo", "--turn", "h", "--why", "x", code=1)["error"]
    assert nothing["code"] == "call_not_found"
    missing = told("ledger", "show", "call_0", code=1)["error"]
    assert missing["code"] == "call_not_found"
    assert "`toolgate ledger list --tenant NAME`" in missing["message"]
    assert "`GET /v1/ledger`" in missing["message"]


@pytest.mark.req("S3", "V5")
def test_what_nobody_knows_is_settled_or_run_again(root: Path) -> None:
    lost = told("call", "mail", "--args", '{"to": "nobody"}', code=1)["call_id"]
    assert [one["call_id"] for one in told("ledger", "list", "--state", "unknown")] == [lost]
    assert run("ledger", "settle", lost, "happened").exit_code == 2
    empty = told("ledger", "settle", lost, "happened", "--why", " ", code=1)
    assert empty["error"]["code"] == "invalid_request"
    again = told("ledger", "again", lost, "--why", "nothing came", code=1)
    assert again["call_id"] != lost
    assert done(root) == ["mail:nobody"] * 2
    settled = run("ledger", "settle", lost, "did-not-happen", "--why", "asked them")
    assert settled.exit_code == 0
    assert "is failed now" in settled.stdout
    said = {change: (who, why) for change, who, why in asyncio.run(audited(root))}
    assert {said[change][1] for change in ("call.again", "call.settled")} == {
        "nothing came",
        "asked them",
    }
    assert said["call.settled"][0].startswith("cli:")


async def audited(root: Path) -> list[tuple[str, str, str]]:
    async with open_gate(root) as gate:
        return [(one.change, one.who, one.why) for one in await gate.tenancy.audit(limit=100)]
