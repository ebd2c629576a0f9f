"""A revoke holds at once where it was made, and soon everywhere else."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.gate.unguarded import begun_in_any_world
from tests.house import ME, STORE, open_gate, until
from toolgate import Call, Caller, Toolgate, ToolgateError, tool, upkeep
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.executor.recording.twins import Twins
from toolgate.gate.book import Book
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.world import World

ran: list[str] = []


@tool(effect="irreversible")
async def effect(call: Call) -> None:
    """Leave a mark."""
    ran.append(call.id)


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    ran.clear()


async def refused(gate: Toolgate, caller: Caller = ME) -> int:
    count = 0
    for _ in range(1_000):
        try:
            await gate.call("effect", caller=caller)
        except ToolNotFound:
            count += 1
    return count


@pytest.mark.req("G1")
@pytest.mark.parametrize(
    "how", ["everyone", "tenant", "agent", "mode", "layer", "role", "persona", "policy"]
)
async def test_after_a_revoke_a_thousand_calls_on_a_warm_cache_do_nothing(
    gate: Toolgate, how: str
) -> None:
    gate.add(effect)
    me = Caller(tenant="acme", agent="billing", persona="clerk", roles=("worker",))
    await gate.call("effect", caller=me)
    assert len(ran) == 1

    if how == "everyone":
        await gate.tenancy.set_tool("effect", enabled=False)
    elif how == "tenant":
        await gate.tenancy.set_tenant_tool("acme", "effect", enabled=False)
    elif how == "agent":
        await gate.tenancy.activate("acme", "billing", "effect", enabled=False)
    elif how == "mode":
        await gate.tenancy.set_agent("acme", "billing", Mode.LISTED)
    elif how == "layer":
        await gate.tenancy.set_layer("base", Layer(deny=("group:write",)), tenant="acme")
    elif how == "role":
        await gate.tenancy.set_layer("base", Layer(deny=("effect",)), role="worker")
    elif how == "persona":
        await gate.tenancy.restrict("clerk", "effect", reason="enough")
    else:
        rule = 'package toolgate\n\nbanned["effect"] contains "enough" if true\n'
        await gate.tenancy.set_policy_module("enough", rule)

    assert await refused(gate, me) == 1_000
    assert len(ran) == 1


async def test_without_the_look_at_the_world_a_warm_cache_would_go_on_allowing(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.add(effect)
    await gate.call("effect", caller=ME)
    await gate.tenancy.set_tool("effect", enabled=False)

    def asleep(_book: Book, _caller: Caller, _world: World) -> bool:
        return True

    monkeypatch.setattr(Book, "follow", asleep)
    monkeypatch.setattr(Twins, "_begun", begun_in_any_world)
    await gate.call("effect", caller=ME)
    assert len(ran) == 2, "the guard is what the test above stands on"


async def test_the_same_agent_name_in_two_tenants_is_cached_apart(gate: Toolgate) -> None:
    gate.add(effect)
    theirs = Caller(tenant="umbrella", agent="billing")
    await gate.call("effect", caller=theirs)
    await gate.tenancy.set_tenant_tool("acme", "effect", enabled=False)
    await gate.call("effect", caller=theirs)
    assert await refused(gate, ME) == 1_000
    assert len(ran) == 2


async def test_a_call_granted_before_a_revoke_is_on_record_with_the_world_it_was_granted_in(
    gate: Toolgate,
) -> None:
    gate.add(effect)
    grant = await gate.gate.decide(ME, "effect")
    await gate.tenancy.set_tool("effect", enabled=False)
    assert grant.tenancy_revision < gate.tenancy.world.revision


async def test_an_override_asks_for_more_care_and_never_for_less(gate: Toolgate) -> None:
    gate.add(effect)
    for care in ({"requires_confirmation": True}, {"requires_approval": True}):
        await gate.tenancy.activate("acme", "billing", "effect", overrides=care)
        assert (await gate.call("effect", caller=ME)).status == "pending_approval"
    await gate.tenancy.activate("acme", "billing", "effect", overrides={})
    await gate.call("effect", caller=ME)
    assert len(ran) == 1

    gate.add(tool(effect="irreversible", requires_approval=True, name="careful")(_careful))
    less = {"requires_approval": False}
    with pytest.raises(InvalidRequest, match="never for less"):
        await gate.tenancy.activate("acme", "billing", "careful", overrides=less)
    assert (await gate.call("careful", caller=ME)).status == "pending_approval"
    assert len(ran) == 1


async def _careful() -> None:
    ran.append("careful")


@pytest.mark.req("G1")
async def test_what_another_process_revokes_is_refused_here_soon(
    gate: Toolgate, tmp_path: Path
) -> None:
    (tmp_path / "toolgate.toml").touch()
    said = {"text": "hello"}
    assert (await gate.call("echo", said, caller=ME)).ok
    other = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from toolgate.cli.main import main; main()",
        *("tools", "disable", "echo", "--config", str(tmp_path / "toolgate.toml")),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await other.wait() == 0

    await until(lambda: not gate.toolbox(ME).is_available("echo"))
    with pytest.raises(ToolNotFound):
        await gate.call("echo", said, caller=ME)
    assert upkeep._REFRESH < 1, "a change is looked for more than once a second"  # pyright: ignore[reportPrivateUsage]


async def test_a_row_that_cannot_be_read_does_not_end_the_watch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.activate("acme", "billing", "timestamp")
        _write(tmp_path, "UPDATE tool_activations SET policy_overrides = 'no JSON at all'")
        await until(lambda: "cannot be read" in caplog.text)
        assert "no JSON" not in caplog.text
        _write(tmp_path, "UPDATE tool_activations SET policy_overrides = '{}'")
        _write(tmp_path, "UPDATE agents SET capsule_mode = 'listed'")
        await until(lambda: not gate.toolbox(ME).is_available("echo"))


async def test_what_only_a_newer_version_knows_opens_nothing(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_agent("acme", "billing")
        await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        _write(tmp_path, "UPDATE agents SET capsule_mode = 'from_a_newer_version'")
        await until(lambda: not gate.toolbox(ME).is_available("echo"))
        _write(tmp_path, "UPDATE api_keys SET role = 'from_a_newer_version'")
        await until(lambda: not gate.tenancy.world.keys)


def _write(root: Path, statement: str) -> None:
    """As an operator's own hand would, with the revision that makes others look."""
    with closing(sqlite3.connect(root / STORE)) as connection:
        connection.execute(statement)
        [newest] = connection.execute("SELECT max(value) FROM revisions").fetchone()
        connection.execute("UPDATE revisions SET value = ?", (newest + 1,))
        connection.commit()


async def test_a_refusal_is_an_error_of_ours_that_nothing_ran_behind(gate: Toolgate) -> None:
    gate.add(effect)
    await gate.tenancy.set_tool("effect", enabled=False)
    with pytest.raises(ToolgateError, match="no tool 'effect' that you may call"):
        await gate.call("effect", caller=ME)
    assert await gate.journal.entries("acme") == []
    assert ran == []
