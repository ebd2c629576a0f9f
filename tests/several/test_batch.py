"""Batches: in order, until a critical call fails."""

import json
from typing import Any

import pytest

from toolgate import Caller, ToolError, Turn, tool
from toolgate.errors import InvalidRequest
from toolgate.executor.several.planned import PlannedCall
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("X7")
ME = Caller(tenant="acme", agent="clerk")
TURN = Turn(group="t-1")
done: list[str] = []


@tool(effect="irreversible")
async def note(text: str) -> str:
    """Write something down."""
    if text == "bad":
        raise ToolError("That cannot be written down.")
    done.append(text)
    return text


@tool(effect="irreversible", requires_approval=True)
async def careful() -> None:
    """Wait for a person."""
    done.append("careful")


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def call(text: str, **more: Any) -> dict[str, Any]:
    return {"tool": "note", "args": {"text": text}, **more}


async def test_calls_run_in_their_order_and_each_has_its_output() -> None:
    async with in_memory(note) as house:
        batch = await house.batch([call("a"), call("b"), call("c")], caller=ME, turn=TURN)
    assert [output.data for output in batch.outputs] == ["a", "b", "c"] == done
    assert (batch.ok, batch.stopped_at) == (True, None)


async def test_a_critical_failure_ends_the_batch_and_the_rest_is_skipped() -> None:
    async with in_memory(note) as house:
        batch = await house.batch([call("a"), call("bad"), call("c")], caller=ME, turn=TURN)
    assert [output.status for output in batch.outputs] == ["success", "error", "skipped"]
    assert (batch.ok, batch.stopped_at) == (False, 1)
    assert done == ["a"]
    skipped = batch.outputs[2].error
    assert skipped is not None
    assert (skipped.code, skipped.message) == (
        "skipped",
        "Call 1 of the batch, 'note', is critical and did not end well. It did not run.",
    )


async def test_a_failure_that_is_not_critical_does_not() -> None:
    async with in_memory(note) as house:
        batch = await house.batch([call("bad", critical=False), call("c")], caller=ME, turn=TURN)
    assert [output.status for output in batch.outputs] == ["error", "success"]
    assert (batch.ok, batch.stopped_at, done) == (False, None, ["c"])


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({"tool": "no_such"}, "tool_not_found"),
        ({"tool": "note", "args": {"txt": 1}}, "invalid_arguments"),
        ({"tool": "careful"}, "approval_pending"),
    ],
)
async def test_a_refusal_and_a_wait_for_a_person_end_it_too(
    first: dict[str, Any], code: str
) -> None:
    async with in_memory(note, careful) as house:
        batch = await house.batch([first, call("b")], caller=ME, turn=TURN)
    assert batch.outputs[0].error is not None
    assert batch.outputs[0].error.code == code
    assert batch.outputs[1].status == "skipped"
    assert done == []


async def test_what_the_planner_said_is_in_the_log() -> None:
    journal = MemoryJournal()
    async with in_memory(note, journal=journal) as house:
        planned = {
            "tool_name": "note",
            "args": {"text": "a"},
            "when": "BEFORE_STEP",
            "bound_rule_id": "r-7",
            "bound_step_id": "s-2",
        }
        await house.batch([planned, PlannedCall(tool="note", args={"text": "b"})], caller=ME)
    first, second = (json.loads(entry.planned) for entry in journal.calls)
    assert first == {"when": "before_step", "rule": "r-7", "step": "s-2", "critical": True}
    assert (second["when"], second["rule"]) == ("during_step", "")


async def test_a_key_of_its_own_makes_two_equal_calls_two() -> None:
    async with in_memory(note) as house:
        batch = await house.batch([call("a"), call("a")], caller=ME, turn=TURN)
        assert [output.cached for output in batch.outputs] == [False, True]
        await house.batch([call("a", idempotency_key="again")], caller=ME, turn=TURN)
    assert done == ["a", "a"]


@pytest.mark.parametrize(
    "calls",
    [
        [],
        "note",
        {"tool": "note"},
        None,
        [call(str(number)) for number in range(11)],
        [call("a"), "note"],
        [call("a"), {"args": {}}],
        [call("a"), {"tool": ""}],
        [call("a"), call("b", when="later")],
        [call("a"), call("b", citical=False)],
        [call("a"), call("b", idempotency_key="not plain")],
        [call("a"), call("b", bound_step_id="x" * 300)],
        [call("a"), {"tool": "note", "args": [1]}],
    ],
)
async def test_a_batch_that_does_not_fit_is_refused_as_a_whole(calls: Any) -> None:
    async with in_memory(note) as house:
        with pytest.raises(InvalidRequest):
            await house.batch(calls, caller=ME, turn=TURN)
        assert done == []
        good = [call(str(number)) for number in range(10)]
        assert (await house.toolbox(ME, TURN).batch(good)).ok
