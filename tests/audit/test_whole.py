"""Every call ends on record, once; every refusal is in the audit; others can verify it."""

import asyncio
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.house import ME, STORE, open_gate, states
from toolgate import Caller, Extension, Output, Toolgate, tool
from toolgate.call import Call
from toolgate.cli.main import app
from toolgate.errors import CallRefused, InvalidArguments, StoreUnavailable, ToolError, ToolNotFound

pytestmark = pytest.mark.req("O2")


@tool(effect="pure")
def look(word: str) -> str:
    """Look something up."""
    if word == "fail":
        raise ToolError("no such word")
    return word


@tool(effect="irreversible")
def send(word: str) -> str:
    """Send something."""
    return word


def records(root: Path, change: str = "") -> list[dict[str, Any]]:
    with closing(sqlite3.connect(root / STORE)) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute("SELECT * FROM audit_log ORDER BY id")]
    told = [row | {"details": json.loads(row["details"])} for row in found]
    return [row for row in told if not change or row["change"] == change]


class Refuses(Extension):
    """Says no to a word, or answers instead of the tool."""

    def before(self, call: Call) -> Output | None:
        if call.args["word"] == "answered":
            return Output(status="success", data="instead")
        if call.args["word"] == "refused":
            raise CallRefused("not this word")
        return None


@pytest.mark.parametrize("priority", [100, 250, 350, 450, 500])
async def test_every_call_has_exactly_one_record_of_its_end(tmp_path: Path, priority: int) -> None:
    extension = Refuses()
    extension.priority = priority
    async with open_gate(tmp_path, extension) as gate:
        gate.add(look, send)
        for name in ("look", "send"):
            await gate.call(name, {"word": "good"}, caller=ME)
            await gate.call(name, {"word": "answered"}, caller=ME)
            with pytest.raises(CallRefused):
                await gate.call(name, {"word": "refused"}, caller=ME)
        await gate.call("look", {"word": "fail"}, caller=ME)
        found = await states(gate)
    each = [("succeeded", ""), ("failed", "not_run"), ("failed", "internal_error")]
    assert found == [
        *(("look", *one) for one in each),
        *(("send", *one) for one in each),
        ("look", "failed", "tool_error"),
    ]


async def test_wrong_arguments_are_on_record_without_themselves(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        with pytest.raises(InvalidArguments):
            await gate.call("send", {"word": "canary-1", "more": "canary-2"}, caller=ME)
        [entry] = await gate.journal.entries("acme")
    assert (entry.state, entry.error_code) == ("failed", "invalid_arguments")
    assert b"canary" not in (tmp_path / STORE).read_bytes()


async def test_a_refusal_of_the_gate_is_in_the_audit_once(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        await gate.tenancy.set_tenant_tool("acme", "send", enabled=False)
        for _ in range(3):
            with pytest.raises(ToolNotFound):
                await gate.call("send", {"word": "x"}, caller=ME)
    [row] = records(tmp_path, "call.refused")
    assert row["who"] == "billing"
    assert row["details"]["tool"] == "send"
    assert row["details"]["phase"] == "registry"
    assert row["details"]["decision"].startswith("dec_")


async def test_an_execution_is_in_the_audit_with_its_end(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        output = await gate.call("send", {"word": "canary-3"}, caller=ME)
        await gate.call("echo", {"text": "canary-4"}, caller=ME)
    [row] = records(tmp_path, "call.ended")
    assert row["details"]["call_id"] == output.call_id
    assert (row["details"]["tool"], row["details"]["state"]) == ("send", "succeeded")
    [page] = records(tmp_path, "calls.page")
    assert page["details"]["calls"] == 1
    assert "canary" not in json.dumps(records(tmp_path))
    assert all(one["seal"] for one in records(tmp_path)), "closing seals what is left"


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "control"])
async def test_without_an_audit_there_is_no_acknowledged_side_effect(
    tmp_path: Path,
    broken: bool,  # noqa: FBT001
) -> None:
    """The audit is in the transaction that the outcome is in: neither, or both."""
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        if broken:
            with closing(sqlite3.connect(tmp_path / STORE)) as connection:
                connection.execute(
                    "CREATE TRIGGER full BEFORE INSERT ON audit_log "
                    "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
                )
        output = await gate.call("send", {"word": "x"}, caller=ME)
        [entry] = await _open_entries(gate)
        if broken:
            assert output.status == "unknown"
            assert "put on record" in (output.error.message if output.error else "")
            assert entry.state == "started"
        else:
            assert (output.ok, entry.state) == (True, "succeeded")
        if broken:
            with closing(sqlite3.connect(tmp_path / STORE)) as connection:
                connection.execute("DROP TRIGGER full")


async def _open_entries(gate: Toolgate) -> Any:
    return [one for one in await gate.journal.entries("acme") if one.tool == "send"]


async def test_a_disk_that_is_full_refuses_side_effects(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        await gate.call("send", {"word": "x"}, caller=ME)
        with closing(sqlite3.connect(tmp_path / STORE)) as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON tool_execution_log "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        with pytest.raises(StoreUnavailable):
            await gate.call("send", {"word": "y"}, caller=ME)
        with closing(sqlite3.connect(tmp_path / STORE)) as connection:
            connection.execute("DROP TRIGGER full")
        assert (await gate.call("send", {"word": "z"}, caller=ME)).ok


def verified_elsewhere(lines: list[str]) -> bool:
    """The recipe of the docs: nothing of toolgate is in it."""

    def sha256(value: object, *, sort: bool) -> str:
        raw = json.dumps(value, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(raw.encode()).hexdigest()

    before: dict[str, list[Any]] = {}
    held: list[list[Any]] = []
    for row in map(json.loads, lines):
        if row["kind"] == "record":
            said = [row[k] for k in ("at_ns", "tenant", "who", "why", "change", "details")]
            if sha256(said, sort=True) != row["digest"]:
                return False
            held.append([row["id"], row["digest"]])
            continue
        chain = before.setdefault(row["tenant"], [0, ""])
        said = [chain[1], row["tenant"], row["number"], row["at_ns"], held]
        if row["number"] != chain[0] + 1 or sha256(said, sort=False) != row["hash"]:
            return False
        before[row["tenant"]], held = [row["number"], row["hash"]], []
    return True


async def _busy_store(root: Path) -> None:
    async with open_gate(root) as gate:
        gate.add(send)
        for tenant in ("acme", "globex"):
            caller = Caller(tenant=tenant, agent="clerk", user="Änne \u2028")
            await gate.call("echo", {"text": "x"}, caller=caller)
            await gate.call("send", {"word": "x"}, caller=caller)


async def test_what_is_exported_can_be_verified_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _busy_store(tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = await _said("audit", "export")
    assert verified_elsewhere(lines)
    assert not verified_elsewhere([line.replace('"succeeded"', '"failed"') for line in lines])
    for gone in range(len(lines) - 1):
        assert not verified_elsewhere(lines[:gone] + lines[gone + 1 :])


async def _said(*command: str, exit_code: int = 0) -> list[str]:
    result = await asyncio.to_thread(CliRunner().invoke, app, list(command))
    assert result.exit_code == exit_code, result.output
    return result.stdout.splitlines()


async def test_the_command_tells_what_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _busy_store(tmp_path)
    monkeypatch.chdir(tmp_path)
    anchors = [line.split()[-1] for line in await _said("audit", "anchor")][1:]
    kept = [part for anchor in anchors for part in ("--anchor", anchor)]
    assert "holds" in (await _said("audit", "verify", *kept))[0]
    assert json.loads("".join(await _said("audit", "verify", "--json")))["holds"] is True
    with closing(sqlite3.connect(tmp_path / STORE)) as connection:
        connection.execute("UPDATE audit_log SET who = 'mallory' WHERE change = 'call.ended'")
        connection.commit()
    told = await _said("audit", "verify", exit_code=1)
    assert told[0].startswith("broken: record ")
    assert "was changed" in told[0]
    beef = f"1:{'beef' * 16}"
    told = await _said("audit", "verify", "--anchor", beef, "--tenant", "acme", exit_code=1)
    assert any("is in no chain" in line for line in told)
    await _said("audit", "verify", "--tenant", "nobody", exit_code=1)
