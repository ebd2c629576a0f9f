"""Extensions: where each stands, what its hooks can do, and what is told when one breaks."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, journal_rows, open_gate, states
from toolgate import Call, Extension, Output, Priority, ToolError, Toolgate, ToolgateError, tool
from toolgate.errors import (
    CallRefused,
    ExecutionFailed,
    InvalidArguments,
    InvalidOutput,
    RateLimited,
)
from toolgate.executor.executor import Executor
from toolgate.executor.extension import Handler

CANARY = "canary-7d1f"
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    ran.clear()


@tool(effect="irreversible")
async def pay(amount: int) -> int:
    """Leave a mark."""
    ran.append("pay")
    return amount


@tool(effect="irreversible", requires_approval=True)
async def careful(amount: int) -> int:
    """Needs a person."""
    ran.append("careful")
    return amount


@tool(effect="irreversible")
async def breaks(how: str) -> Any:
    """Fails in the way that is asked for."""
    ran.append("breaks")
    if how == "tool_error":
        raise ToolError("out of stock")
    if how == "not_json":
        return object()
    raise ValueError(CANARY)


class Seen(Extension):
    """Notes who saw the call on its way in and out."""

    def __init__(self, priority: int, seen: list[str], root: Path | None = None) -> None:
        self.priority = priority
        self._name = Priority(priority).name
        self._seen = seen
        self._root = root

    def before(self, call: Call) -> None:
        on_record = "" if self._root is None or not journal_rows(self._root, call.id) else "+record"
        self._seen.append(f"{self._name}{on_record}")

    async def after(self, call: Call, output: Output) -> None:
        self._seen.append(f"{self._name} after")

    def failed(self, call: Call, error: ToolgateError) -> None:
        self._seen.append(f"{self._name} {error.code}")


@pytest.mark.req("X3", "X2")
async def test_priorities_place_an_extension_where_they_say(tmp_path: Path) -> None:
    seen: list[str] = []
    order = [Priority.LOW, Priority.HIGHEST, Priority.LOWEST, Priority.NORMAL, Priority.HIGH]
    extensions = [Seen(one, seen, tmp_path) for one in order]
    async with open_gate(tmp_path, *extensions) as gate:
        gate.add(pay, careful)

        assert (await gate.call("pay", {"amount": 3}, caller=ME)).data == 3
        inwards = ["HIGHEST", "HIGH", "NORMAL", "LOW+record", "LOWEST+record"]
        outwards = [f"{name} after" for name in ("LOWEST", "LOW", "NORMAL", "HIGH", "HIGHEST")]
        assert seen == inwards + outwards

        seen.clear()
        with pytest.raises(InvalidArguments):
            await gate.call("pay", {"amount": "3"}, caller=ME)
        assert seen == ["HIGHEST", "HIGHEST invalid_arguments"], "also those with wrong arguments"

        seen.clear()
        waiting = await gate.call("careful", {"amount": 3}, caller=ME)
        assert waiting.status == "pending_approval"
        assert seen == ["HIGHEST", "HIGH", "HIGH approval_pending", "HIGHEST approval_pending"]
        assert ran == ["pay"]


@pytest.mark.req("X3")
async def test_equal_priorities_keep_the_order_they_were_given_in(tmp_path: Path) -> None:
    seen: list[str] = []

    class Named(Extension):
        def __init__(self, name: str) -> None:
            self.name = name

        def before(self, call: Call) -> None:
            seen.append(self.name)

    async with open_gate(tmp_path, Named("first"), Named("second"), Named("third")) as gate:
        await gate.call("echo", {"text": "x"}, caller=ME)
    assert seen == ["first", "second", "third"]


class Answers(Extension):
    """`before` answers; the tool does not run."""

    priority = Priority.HIGH

    async def before(self, call: Call) -> Output:
        return Output(status="skipped", data="not today")


@pytest.mark.req("X3")
async def test_before_answers_without_running(tmp_path: Path) -> None:
    async with open_gate(tmp_path, Answers()) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": 3}, caller=ME)
        assert (output.status, output.data, ran) == ("skipped", "not today", [])
        assert output.call_id.startswith("call_"), "every answer can be asked about"
        assert await states(gate) == [("pay", "failed", "not_run")]


@pytest.mark.req("X3")
async def test_after_replaces_and_failed_recovers_in_either_form(tmp_path: Path) -> None:
    class Doubles(Extension):
        async def after(self, call: Call, output: Output) -> Output | None:
            is_number = isinstance(output.data, int)
            return Output(status="success", data=output.data * 2) if is_number else None

    class Recovers(Extension):
        def failed(self, call: Call, error: ToolgateError) -> Output | None:
            if error.code != "tool_error":
                return None
            return Output(status="partial", data=error.message)

    async with open_gate(tmp_path, Doubles(), Recovers()) as gate:
        gate.add(pay, breaks)
        doubled = await gate.call("pay", {"amount": 3}, caller=ME)
        assert (doubled.data, doubled.call_id != "") == (6, True)
        recovered = await gate.call("breaks", {"how": "tool_error"}, caller=ME)
        assert (recovered.status, recovered.data) == ("partial", "out of stock")
        other = await gate.call("breaks", {"how": "raise"}, caller=ME)
        assert other.error is not None
        assert other.error.code == "execution_failed"
        # What an extension makes of it does not change what happened.
        assert await states(gate) == [
            ("pay", "succeeded", ""),
            ("breaks", "failed", "tool_error"),
            ("breaks", "unknown", "execution_failed"),
        ]


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


@pytest.mark.req("X3")
def test_a_hook_that_is_not_defined_costs_nothing() -> None:
    async def inner(call: Call) -> Output:
        raise AssertionError(call)

    class Nothing(Extension):
        priority = Priority.LOW

    class Something(Extension):
        def before(self, call: Call) -> None:
            return None

    assert Nothing().link(inner) is inner
    assert Something().link(inner) is not inner


@pytest.mark.req("X3", "X1")
async def test_the_chain_is_composed_once_and_entered_once_a_call(tmp_path: Path) -> None:
    composed: list[str] = []
    entered: list[str] = []

    class Counts(Extension):
        def link(self, inner: Handler) -> Handler:
            composed.append("once")

            async def run(call: Call) -> Output:
                entered.append(call.id)
                return await inner(call)

            return run

    async with open_gate(tmp_path, Counts()) as gate:
        outputs = [await gate.call("echo", {"text": "x"}, caller=ME) for _ in range(5)]
        await gate.catalog.reload()
        await gate.call("echo", {"text": "x"}, caller=ME)
    assert composed == ["once"]
    assert len(entered) == len(set(entered)) == 6
    assert [output.call_id for output in outputs] == entered[:5]


@pytest.mark.req("X5")
async def test_a_provider_that_raises_what_it_should_not_is_told_without_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd:
        def unusable(self, spec: Any) -> None:
            return None

        async def run(self, call: Call) -> Any:
            raise TimeoutError(CANARY)

    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "odd.yaml").write_text("tools: [{name: odd, provider: odd}]", "utf-8")
    async with open_gate(tmp_path, providers={"odd": Odd()}) as gate:
        output = await gate.call("odd", caller=ME)
        assert output.error is not None
        assert (output.status, output.error.code) == ("unknown", "execution_failed")
        assert output.error.message.startswith("'odd' failed with TimeoutError, an error of its")
        assert await states(gate) == [("odd", "unknown", "execution_failed")]
    assert CANARY not in output.to_human() + caplog.text


async def test_an_executor_without_the_provider_refuses(gate: Toolgate) -> None:
    grant = await gate.gate.decide(ME, "echo")
    with pytest.raises(CallRefused, match="Nothing here runs tools of the kind 'python'"):
        await Executor({}, (), default_timeout=30.0).run(grant, {}, None)


def test_what_failed_and_may_have_run_is_not_called_a_refusal() -> None:
    assert not issubclass(ExecutionFailed, CallRefused)
