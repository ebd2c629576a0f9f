"""An extension that breaks or refuses is told as that, with whether the tool ran."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.executor.marks import CANARY, breaks, pay, ran
from tests.house import ME, open_gate, states
from toolgate import Call, Extension, Output, Priority, ToolError, ToolgateError
from toolgate.errors import CallRefused, InvalidOutput, RateLimited
from toolgate.executor.extension import Handler


def broken(hook: str, how: Callable[[], Any], priority: int, *, is_async: bool) -> Extension:
    def act(*_given: Any) -> Any:
        return how()

    async def act_later(*_given: Any) -> Any:
        return how()

    methods = {hook: act_later if is_async else act, "priority": priority}
    return type("Broken", (Extension,), methods)()


def raises() -> Any:
    raise KeyError(CANARY)


def nonsense() -> Any:
    return "not an Output"


HAD, NOT, MAY = "The tool had run before that.", "The tool did not run.", "The tool may have run."


@pytest.mark.req("X3", "X5")
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("how", [raises, nonsense])
@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.LOW])
@pytest.mark.parametrize(
    ("hook", "tool_name", "says", "state"),
    [
        ("before", "pay", NOT, "failed"),
        ("after", "pay", HAD, "succeeded"),
        ("failed", "breaks", MAY, "unknown"),
    ],
)
async def test_a_broken_hook_says_whether_the_tool_ran_and_the_record_agrees(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    hook: str,
    tool_name: str,
    says: str,
    state: str,
    how: Callable[[], Any],
    priority: int,
    is_async: bool,  # noqa: FBT001
) -> None:
    extension = broken(hook, how, priority, is_async=is_async)
    args = {"amount": 3} if tool_name == "pay" else {"how": "raise"}
    async with open_gate(tmp_path, extension) as gate:
        gate.add(pay, breaks)
        output = await gate.call(tool_name, args, caller=ME)
        assert output.error is not None
        status = "unknown" if says == MAY else "error"
        assert (output.status, output.error.code) == (status, "extension_failed")
        assert output.error.message.endswith(says)
        assert output.error.details["extension"] == "Broken"
        assert output.error.details["hook"] == hook
        assert (output.error.details.get("outcome") == "unknown") is (says == MAY)
        assert (ran == []) is (says == NOT)
        on_record = [found for _tool, found, _code in await states(gate)]
        assert on_record == [state]
        assert CANARY not in output.to_human() + caplog.text


@pytest.mark.req("X3")
async def test_a_broken_hook_behind_an_answer_does_not_say_that_the_tool_ran(
    tmp_path: Path,
) -> None:
    class SignsItself(Extension):
        priority = Priority.LOWEST

        def before(self, call: Call) -> Output:
            return Output(status="skipped", call_id=call.id)

    async with open_gate(
        tmp_path, SignsItself(), broken("after", raises, Priority.HIGH, is_async=False)
    ) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
    assert output.error is not None
    assert output.error.message.endswith(NOT)
    assert ran == []


@pytest.mark.req("X3")
async def test_a_hook_behind_a_replaced_answer_still_knows_that_the_tool_ran(
    tmp_path: Path,
) -> None:
    class Replaces(Extension):
        priority = Priority.LOWEST

        def after(self, call: Call, output: Output) -> Output:
            return Output(status="success", data="another")

    async with open_gate(
        tmp_path, Replaces(), broken("after", raises, Priority.HIGH, is_async=False)
    ) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
    assert output.error is not None
    assert output.error.message.endswith(HAD)


@pytest.mark.req("X3", "S3")
@pytest.mark.parametrize("error", [RateLimited("later"), ToolError("no"), CallRefused("no")])
async def test_a_refusal_after_the_tool_ran_cannot_say_that_nothing_happened(
    tmp_path: Path, error: ToolgateError
) -> None:
    def refuse() -> Any:
        raise error

    extension = broken("after", refuse, Priority.LOW, is_async=False)
    async with open_gate(tmp_path, extension) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
        assert output.error is not None
        assert output.error.code == "extension_failed"
        assert output.error.message.endswith(HAD)
        assert await states(gate) == [("pay", "succeeded", "extension_failed")]


@pytest.mark.req("X3")
async def test_a_refusal_before_the_tool_runs_is_raised_as_it_is(tmp_path: Path) -> None:
    class TooMany(RateLimited):
        code = "too_many"

    def refuse() -> Any:
        raise TooMany("Three are enough.", limit=3)

    for priority in (Priority.HIGHEST, Priority.LOW):
        async with open_gate(tmp_path, broken("before", refuse, priority, is_async=True)) as gate:
            gate.add(pay)
            with pytest.raises(TooMany, match="Three are enough"):
                await gate.call("pay", {"amount": 3}, caller=ME)
    assert ran == []


@pytest.mark.req("X3")
async def test_an_output_that_is_not_right_may_be_refused_after_the_run(tmp_path: Path) -> None:
    def refuse() -> Any:
        raise InvalidOutput("not what was promised")

    async with open_gate(tmp_path, broken("after", refuse, Priority.LOW, is_async=False)) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
        assert output.error is not None
        assert output.error.code == "invalid_output"
        assert await states(gate) == [("pay", "succeeded", "invalid_output")]


@pytest.mark.req("X3", "X5")
async def test_a_link_of_ones_own_that_breaks_is_told_without_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Around(Extension):
        priority = Priority.LOWEST

        def link(self, inner: Handler) -> Handler:
            async def run(call: Call) -> Output:
                await inner(call)
                raise ValueError(CANARY)

            return run

    async with open_gate(tmp_path, Around()) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
        assert output.error is not None
        assert (output.error.code, output.error.details["outcome"]) == (
            "extension_failed",
            "unknown",
        )
        assert await states(gate) == [("pay", "unknown", "internal_error")]
    assert CANARY not in output.to_human() + caplog.text


@pytest.mark.req("X3", "X4")
async def test_a_timeout_of_a_links_own_is_not_taken_for_the_calls(tmp_path: Path) -> None:
    class Impatient(Extension):
        def link(self, inner: Handler) -> Handler:
            async def run(call: Call) -> Output:
                await asyncio.sleep(0)
                raise TimeoutError

            return run

    async with open_gate(tmp_path, Impatient()) as gate:
        output = await gate.call("echo", {"text": "x"}, caller=ME)
    assert output.error is not None
    assert output.error.code == "extension_failed"


@pytest.mark.req("X3")
async def test_a_link_that_returns_nothing_is_told_as_broken(tmp_path: Path) -> None:
    class Forgets(Extension):
        def link(self, inner: Handler) -> Handler:
            async def run(call: Call) -> Any:
                await inner(call)

            return run

    async with open_gate(tmp_path, Forgets()) as gate:
        output = await gate.call("echo", {"text": "x"}, caller=ME)
    assert output.error is not None
    assert output.error.code == "extension_failed"
