"""The chain of a call: where each extension stands, what its hooks can do, and what it costs."""

from pathlib import Path
from typing import Any

import pytest

from tests.executor.marks import CANARY, breaks, careful, pay, ran
from tests.house import ME, journal_rows, open_gate, states
from toolgate import Call, Extension, Output, Priority, Toolgate, ToolgateError
from toolgate.errors import CallRefused, ExecutionFailed, InvalidArguments
from toolgate.executor.executor import Executor
from toolgate.executor.extension import Handler


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
    with pytest.raises(CallRefused, match="Nothing here runs tools of the kind 'builtin'"):
        await Executor({}, (), default_timeout=30.0).run(grant, {}, None)


def test_what_failed_and_may_have_run_is_not_called_a_refusal() -> None:
    assert not issubclass(ExecutionFailed, CallRefused)
