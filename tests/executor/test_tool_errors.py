"""What a tool says on purpose reaches the caller; of its other errors nothing leaks."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, STORE, states
from toolgate import Call, ToolError, Toolgate, tool
from toolgate.errors import ExecutionFailed, InvalidOutput, TimedOut, ToolgateError

CANARY = "canary-c0de"


@pytest.mark.req("X5")
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_errors_words_reach_the_caller_and_no_others_do(
    gate: Toolgate,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    is_async: bool,  # noqa: FBT001
) -> None:
    caplog.set_level(logging.DEBUG)

    def act(how: str) -> None:
        if how == "on purpose":
            raise ToolError("There are only three left.", left=3)
        if how == "chained":
            raise RuntimeError(f"outer {CANARY}") from KeyError(CANARY)
        raise ValueError(f"password={CANARY}")

    async def act_async(how: str) -> None:
        act(how)

    marked = tool(effect="irreversible", name="act")
    gate.add(marked(act_async) if is_async else marked(act))
    told = await gate.call("act", {"how": "on purpose"}, caller=ME)
    assert told.error is not None
    assert (told.error.message, told.error.details) == ("There are only three left.", {"left": 3})
    for how, kind in (("chained", "RuntimeError"), ("other", "ValueError")):
        output = await gate.call("act", {"how": how}, caller=ME)
        assert output.error is not None
        assert output.error.message == (
            f"'act' failed with {kind}, an error of its own. "
            "It may have taken effect: check before you call it again."
        )
        assert CANARY not in output.to_human() + str(output.to_machine())
        assert kind in caplog.text, "the operator learns what it was, and where"
    assert "act, line" in caplog.text
    assert "raise toolgate.ToolError in it to tell callers more" in caplog.text
    assert CANARY not in caplog.text
    assert all(CANARY not in entry.error_message for entry in await gate.journal.entries("acme"))
    for file in (tmp_path / STORE).parent.iterdir():
        assert CANARY.encode() not in file.read_bytes()


@pytest.mark.req("X5", "S3")
@pytest.mark.parametrize("lie", [InvalidOutput, TimedOut, ExecutionFailed])
async def test_only_a_tool_error_speaks_for_the_tool(
    gate: Toolgate, lie: type[ToolgateError]
) -> None:
    @tool(effect="irreversible")
    async def pretends() -> None:
        raise lie(CANARY)

    gate.add(pretends)
    output = await gate.call("pretends", caller=ME)
    assert output.error is not None
    assert (output.status, output.error.code) == ("unknown", "execution_failed")
    assert CANARY not in output.to_human()
    assert await states(gate) == [("pretends", "unknown", "execution_failed")]


@pytest.mark.req("X5")
async def test_a_refusal_inside_a_tool_is_the_tools_failure(gate: Toolgate) -> None:
    @tool(effect="irreversible")
    async def calls_another(call: Call) -> Any:
        return (await gate.call("no_such_tool", caller=call.caller)).data

    gate.add(calls_another)
    output = await gate.call("calls_another", caller=ME)
    assert output.error is not None
    assert output.error.code == "execution_failed"
    assert await states(gate) == [("calls_another", "unknown", "execution_failed")]


@pytest.mark.req("X5")
async def test_details_that_are_not_json_are_told_by_their_type(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def detailed(bad: bool) -> None:  # noqa: FBT001
        raise ToolError("no", thing=object(), name="\ud800" if bad else "fine")

    gate.add(detailed)
    output = await gate.call("detailed", {"bad": False}, caller=ME)
    assert output.to_machine()["error"]["details"] == {"thing": "object", "name": "fine"}
    output = await gate.call("detailed", {"bad": True}, caller=ME)
    assert output.to_machine()["error"]["details"] == {}
