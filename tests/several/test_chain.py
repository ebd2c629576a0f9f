"""Chains: steps that use each other's results, in waves, each through the gate by itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolgate import Caller, ToolError, Toolgate, Turn, tool
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.gate import registry
from toolgate.settings.execution import Toolbox as ToolboxSettings
from toolgate.settings.settings import Settings
from toolgate.spec.effect import CallerKind
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("X7")
ME = Caller(tenant="acme", agent="clerk")
TURN = Turn(group="t-1")
done: list[str] = []
running, most = 0, 0


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    global running, most  # noqa: PLW0603
    done.clear()
    running = most = 0


async def _together() -> None:
    """How many are at it at the same time."""
    global running, most  # noqa: PLW0603
    running += 1
    most = max(most, running)
    for _ in range(5):
        await asyncio.sleep(0)
    running -= 1


@tool(effect="pure")
async def look(at: str) -> dict[str, Any]:
    """Look something up."""
    await _together()
    return {"found": {"id": f"{at}-1", "tags": ["x", "y"]}}


@tool(
    effect="compensatable",
    allowed_callers=["chain"],
    compensation={"tool": "erase", "args": {"id": "$result.id"}},
)
async def write(id: str) -> dict[str, str]:  # noqa: A002
    """Write something; only as part of a chain."""
    await _together()
    if id == "bad":
        raise ToolError("That cannot be written.")
    done.append(f"write {id}")
    return {"id": id}


@tool(effect="idempotent")
async def erase(id: str) -> None:  # noqa: A002
    """Take a writing back."""
    done.append(f"erase {id}")


@tool(effect="irreversible", allowed_callers=["direct", "chain"])
async def escalate() -> None:
    """Hand the task on."""


TOOLS = (look, write, erase, escalate)
STEPS: list[dict[str, Any]] = [
    {"tool": "look", "args": {"at": "a"}, "name": "first"},
    {"tool": "look", "args": {"at": "b"}},
    {"tool": "write", "args": {"id": "$steps.first.result.found.id"}},
    {"tool": "write", "args": {"id": "$steps.1.result.found.tags.1"}},
    {"tool": "look", "args": {"at": "$steps.2.result.id"}},
]


async def test_steps_use_earlier_results_and_reads_run_together() -> None:
    journal = MemoryJournal()
    async with in_memory(*TOOLS, journal=journal) as house:
        chain = await house.chain(STEPS, caller=ME, turn=TURN)
    assert chain.ok
    assert done == ["write a-1", "write y"]
    assert chain.waves == ((0, 1), (2,), (3,), (4,))
    assert (chain.mode_requested, chain.mode_used, chain.fallback_to_seq) == (
        "parallel", "parallel", False,
    )  # fmt: skip
    assert most == 2
    logged = sorted((entry.chain_index, entry.tool, entry.caller_kind) for entry in journal.calls)
    assert logged == [(index, step["tool"], CallerKind.CHAIN) for index, step in enumerate(STEPS)]
    assert {entry.chain for entry in journal.calls} == {chain.chain_id}


async def test_the_answer_says_how_the_chain_was_run() -> None:
    async with in_memory(*TOOLS) as house:
        chain = await house.toolbox(ME, TURN).chain(STEPS[:2], mode="sequential")
    told = chain.to_machine()
    steps = told.pop("steps")
    assert told == {
        "ok": True,
        "chain_id": chain.chain_id,
        "mode_requested": "sequential",
        "mode_used": "sequential",
        "fallback_to_seq": False,
        "parallel_mutations_enabled": False,
        "waves": [[0], [1]],
    }
    assert [(one["index"], one["wave"], one["tool"], one["ok"]) for one in steps] == [
        (0, 0, "look", True),
        (1, 1, "look", True),
    ]
    assert steps[0]["name"] == "first"
    assert most == 1


async def test_where_nothing_can_run_together_the_fallback_is_told() -> None:
    steps = [STEPS[0], {"tool": "look", "args": {"at": "$steps.0.result.found.id"}}]
    async with in_memory(*TOOLS) as house:
        chain = await house.chain(steps, caller=ME)
    assert (chain.mode_used, chain.fallback_to_seq) == ("sequential", True)


WRITES = [{"tool": "write", "args": {"id": name}} for name in "abc"]


@pytest.mark.parametrize(("enabled", "asked", "waves"), [
    (True, True, ((0, 1, 2),)),
    (True, False, ((0,), (1,), (2,))),
    (False, True, ((0,), (1,), (2,))),
])  # fmt: skip
async def test_side_effects_run_together_only_where_that_is_enabled_and_asked_for(
    tmp_path: Path, *, enabled: bool, asked: bool, waves: Any
) -> None:
    settings = Settings(root=tmp_path, toolbox=ToolboxSettings(parallel_mutations=enabled))
    async with Toolgate.open(settings) as gate:
        gate.add(write, erase)
        chain = await gate.chain(WRITES, caller=ME, turn=TURN, parallel_mutations=asked)
    assert chain.ok
    assert chain.waves == waves
    assert chain.parallel_mutations_enabled is (enabled and asked)
    assert most == len(waves[0])


async def test_no_read_is_moved_past_a_side_effect() -> None:
    steps = [WRITES[0], STEPS[0], STEPS[1], WRITES[1], {"tool": "look", "args": {"at": "c"}}]
    async with in_memory(*TOOLS) as house:
        chain = await house.chain(steps, caller=ME, turn=TURN)
    assert chain.waves == ((0,), (1, 2), (3,), (4,))


FAILING = [WRITES[0], WRITES[1], {"tool": "write", "args": {"id": "bad"}}, STEPS[0]]


async def test_a_failure_ends_the_chain() -> None:
    async with in_memory(*TOOLS) as house:
        chain = await house.chain(FAILING, caller=ME, turn=TURN)
    assert not chain.ok
    assert [step.output.status for step in chain.steps] == ["success"] * 2 + ["error", "skipped"]
    assert done == ["write a", "write b"]
    assert chain.undone is None


async def test_what_a_failed_chain_did_is_taken_back_in_reverse_where_that_was_asked_for(
    tmp_path: Path,
) -> None:
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(*TOOLS)
        chain = await gate.chain(FAILING, caller=ME, turn=TURN, undo_on_failure=True)
        assert done == ["write a", "write b", "erase b", "erase a"]
        undone = chain.to_machine()["undone"]
        assert undone["ok"] is True
        assert [one["result"] for one in undone["items"]].count("undone") == 2
        good = await gate.chain(WRITES[:1], caller=ME, undo_on_failure=True)
        assert (good.ok, good.undone) == (True, None)


async def test_a_result_that_lacks_what_a_later_step_needs_ends_it() -> None:
    steps = [STEPS[0], {"tool": "write", "args": {"id": "$steps.0.result.nothing"}}]
    async with in_memory(*TOOLS) as house:
        chain = await house.chain(steps, caller=ME)
    error = chain.steps[1].output.error
    assert error is not None
    assert "'$steps.0.result.nothing'" in error.message
    assert done == []


async def test_a_text_that_only_looks_like_a_reference_can_be_said() -> None:
    steps = [STEPS[0], {"tool": "write", "args": {"id": "$$steps.0.result"}}]
    async with in_memory(*TOOLS) as house:
        assert (await house.chain(steps, caller=ME)).ok
    assert done == ["write $steps.0.result"]


WRONG: dict[str, tuple[Any, str]] = {
    "empty": ([], "list of steps"),
    "a text": ("look", "list of steps"),
    "too many": ([STEPS[0]] * 11, "at most 10"),
    "unknown tool": ([WRITES[0], {"tool": "no_such"}], "Step 1 cannot run: There is no tool"),
    "not for chains": ([WRITES[0], {"tool": "erase", "args": {"id": "a"}}], "may not be part"),
    "routing": ([WRITES[0], {"tool": "escalate"}], "Step 1 cannot run: 'escalate' may not"),
    "itself": ([{"tool": "look", "args": {"at": "$steps.0.result"}}], "does not come before"),
    "later": ([{"tool": "look", "args": {"at": "$steps.1.result"}}, STEPS[0]], "not come before"),
    "no such step": ([WRITES[0], {"tool": "look", "args": {"at": "$steps.x.result"}}], "no such"),
    "no result": ([WRITES[0], {"tool": "look", "args": {"at": "$steps.0.error"}}], "no result"),
    "two names": ([STEPS[0], {**STEPS[1], "name": "first"}], "Step 1 has the name 'first'"),
    "a number as name": ([{**STEPS[0], "name": "0"}], "Step 0 has a name"),
    "unknown field": ([WRITES[0], {"tool": "look", "arg": {}}], "Step 1 does not fit"),
    "no tool": ([WRITES[0], {"args": {}}], "Step 1 does not fit"),
    "no JSON": ([WRITES[0], {"tool": "look", "args": {"at": {1, 2}}}], "Step 1 does not fit"),
}


@pytest.mark.parametrize(("steps", "why"), WRONG.values(), ids=WRONG.keys())
async def test_a_chain_that_cannot_work_is_refused_before_anything_runs(
    steps: Any, why: str
) -> None:
    async with in_memory(*TOOLS) as house:
        with pytest.raises(InvalidRequest, match=why.replace("$", r"\$")) as refused:
            await house.chain(steps, caller=ME, turn=TURN)
    assert ".." not in refused.value.message
    assert done == []
    assert most == 0


async def test_a_mode_that_is_none_is_refused() -> None:
    async with in_memory(*TOOLS) as house:
        with pytest.raises(InvalidRequest, match="mode"):
            await house.chain(STEPS, caller=ME, mode="fast")  # pyright: ignore[reportArgumentType]


async def test_a_tool_for_chains_alone_is_neither_listed_nor_called_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with in_memory(*TOOLS) as house:
        assert "write" not in [spec.name for spec in await house.discover(ME)]
        with pytest.raises(ToolNotFound):
            await house.call("write", {"id": "a"}, caller=ME)
        assert done == []
        assert (await house.chain(WRITES[:1], caller=ME)).ok
    monkeypatch.setattr(registry, "_unreached", lambda *_: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    async with in_memory(*TOOLS) as house:
        assert (await house.call("write", {"id": "b"}, caller=ME)).ok
        assert (await house.chain([{"tool": "escalate"}], caller=ME)).ok


@pytest.mark.req("G1")
async def test_each_step_needs_the_permission_that_it_would_need_alone() -> None:
    directory = MemoryDirectory()
    await Tenancy(directory).set_tenant_tool("acme", "write", enabled=False)
    async with in_memory(*TOOLS, directory=directory) as house:
        with pytest.raises(InvalidRequest, match="Step 2 cannot run"):
            await house.chain(STEPS, caller=ME, turn=TURN)
        other = Caller(tenant="other", agent="clerk")
        assert (await house.chain(STEPS, caller=other, turn=TURN)).ok
