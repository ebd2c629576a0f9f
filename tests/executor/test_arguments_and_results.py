"""What goes in is what the schema says; what comes out is JSON; what leaks is nothing."""

import dataclasses
import datetime as dt
import functools
import logging
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from tests.house import ME, STORE, open_gate, states
from toolgate import Call, Output, ToolError, Toolgate, tool
from toolgate.errors import (
    ExecutionFailed,
    InvalidArguments,
    InvalidOutput,
    InvalidRequest,
    NameClash,
    TimedOut,
    ToolgateError,
    ToolNotFound,
)

CANARY = "canary-c0de"


@tool(effect="irreversible")
async def pay(amount: int, to: str, notes: list[str] | None = None) -> dict[str, Any]:
    """Pay."""
    return {"amount": amount, "to": to, "notes": notes}


def pointers(error: InvalidArguments) -> list[str]:
    return sorted(problem["pointer"] for problem in error.details["problems"])


@pytest.mark.req("X2", "X5")
@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({}, ["", ""]),
        ({"amount": 1}, [""]),
        ({"amount": "1", "to": "ann"}, ["/amount"]),
        ({"amount": 1.5, "to": "ann"}, ["/amount"]),
        ({"amount": True, "to": "ann"}, ["/amount"]),
        ({"amount": None, "to": "ann"}, ["/amount"]),
        ({"amount": 1, "to": 7}, ["/to"]),
        ({"amount": 1, "to": "ann", "extra": 1}, [""]),
        ({"amount": 1, "to": "ann", "notes": ["a", 2]}, ["/notes"]),
        ({"amount": "1", "to": 7}, ["/amount", "/to"]),
    ],
)
async def test_wrong_arguments_are_named_by_pointer_and_nothing_runs(
    gate: Toolgate, args: dict[str, Any], where: list[str]
) -> None:
    gate.add(pay)
    with pytest.raises(InvalidArguments) as raised:
        await gate.call("pay", args, caller=ME)
    assert pointers(raised.value) == where
    assert "nothing ran" in raised.value.message
    assert await states(gate) == [("pay", "failed", "invalid_arguments")]


@pytest.mark.req("X2")
async def test_right_arguments_pass_unchanged(gate: Toolgate) -> None:
    gate.add(pay)
    given = {"amount": 1, "to": "1", "notes": ["2"]}
    assert (await gate.call("pay", given, caller=ME)).data == given


@pytest.mark.req("X2")
async def test_without_validation_a_wrong_type_would_be_coerced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def passing(_self: object, inner: Any) -> Any:
        return inner

    def untouched(call: Any) -> Any:
        return call, b"{}"

    monkeypatch.setattr("toolgate.executor.validate.Validate.link", passing)
    monkeypatch.setattr("toolgate.executor.recording.entries.settled", untouched)
    async with open_gate(tmp_path) as gate:
        gate.add(pay)
        output = await gate.call("pay", {"amount": "1", "to": "ann"}, caller=ME)
    assert output.data["amount"] == 1, "the guard is what the tests above stand on"


@pytest.mark.req("X2", "X5")
@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"x", 2**70, "\ud800", {1: "one"}, [object()]],
    ids=["object", "set", "bytes", "large", "surrogate", "key", "nested"],
)
@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_arguments_that_are_not_json_are_refused_where_the_schema_takes_anything(
    gate: Toolgate, value: Any, effect: Any
) -> None:
    ran: list[Any] = []

    async def takes(anything: Any) -> None:
        ran.append(anything)

    gate.add(tool(effect=effect)(takes))
    with pytest.raises(InvalidArguments, match="not JSON"):
        await gate.call("takes", {"anything": value}, caller=ME)
    assert ran == []
    assert await states(gate) == [("takes", "failed", "invalid_arguments")]
    assert (await gate.call("takes", {"anything": [1, "two", None]}, caller=ME)).ok


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.req("X2", "X5")
@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY, [None, {"deep": NAN}]])
@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_arguments_that_json_has_no_number_for_are_refused(
    gate: Toolgate, value: Any, effect: Any
) -> None:
    ran: list[Any] = []

    async def takes(anything: Any) -> None:
        ran.append(anything)

    gate.add(tool(effect=effect)(takes))
    with pytest.raises(InvalidArguments, match="no word for NaN and infinity"):
        await gate.call("takes", {"anything": value}, caller=ME)
    assert ran == []
    assert await states(gate) == [("takes", "failed", "invalid_arguments")]
    fine = {"null": None, "text": "null", "small": 1e-300}
    assert (await gate.call("takes", {"anything": fine}, caller=ME)).ok


@pytest.mark.req("X2")
async def test_a_value_that_holds_itself_is_refused(gate: Toolgate) -> None:
    knot: list[Any] = []
    knot.append(knot)
    gate.add(pay)
    for args in ({"amount": knot, "to": "ann"}, {"amount": 1, "to": "ann", "notes": knot}):
        with pytest.raises(InvalidArguments):
            await gate.call("pay", args, caller=ME)


@pytest.mark.req("X2")
@pytest.mark.parametrize("args", [[], "text", 3, (("amount", 1),)])
async def test_arguments_are_an_object(gate: Toolgate, args: Any) -> None:
    with pytest.raises(InvalidRequest, match="object of names and values"):
        await gate.call("echo", args, caller=ME)


@pytest.mark.req("S6")
@pytest.mark.parametrize(
    "care",
    [
        {"requires_approval": True},
        {"requires_confirmation": True},
        {"destructive": True},
    ],
)
async def test_what_needs_a_person_refuses_and_never_runs(
    gate: Toolgate, care: dict[str, Any]
) -> None:
    ran: list[str] = []

    async def act() -> None:
        ran.append("act")

    gate.add(tool(effect="irreversible", **care)(act))
    for _ in range(3):
        output = await gate.call("act", caller=ME)
        assert (output.ok, output.status) == (False, "pending_approval")
        assert output.error is not None
        assert output.error.code == "approval_pending"
        assert "Nothing ran" in output.error.message
    assert ran == []
    assert await states(gate) == [("act", "waiting", "")]


@pytest.mark.req("S6")
async def test_without_the_approval_link_it_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def passing(_self: object, inner: Any) -> Any:
        return inner

    monkeypatch.setattr("toolgate.executor.people.approval.Ask.link", passing)
    async with open_gate(tmp_path) as gate:
        gate.add(tool(effect="irreversible", destructive=True)(pay))
        assert (await gate.call("pay", {"amount": 1, "to": "ann"}, caller=ME)).ok


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


class Colour(StrEnum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    left: int
    right: str


@pytest.mark.req("P1", "X1")
@pytest.mark.parametrize(
    ("result", "data"),
    [
        (None, None),
        (True, True),
        ("text", "text"),
        ("", ""),
        (3, 3),
        (2.5, 2.5),
        ([1, "a"], [1, "a"]),
        ((1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Point(x=1), {"x": 1}),
        ([Point(x=1)], [{"x": 1}]),
        (Pair(1, "b"), {"left": 1, "right": "b"}),
        (dt.date(2026, 1, 2), "2026-01-02"),
    ],
)
async def test_a_result_becomes_plain_json(gate: Toolgate, result: Any, data: Any) -> None:
    async def gives() -> Any:
        return result

    gate.add(tool(effect="pure")(gives))
    output = await gate.call("gives", caller=ME)
    assert (output.ok, output.data, type(output.data)) == (True, data, type(data))
    assert output.to_machine()["data"] == data


@pytest.mark.req("P1", "X5")
@pytest.mark.parametrize(
    "result",
    [object(), {1: 2}, {1, 2}, b"raw", 2**70, "\ud800", lambda: None],
    ids=["object", "key", "set", "bytes", "large", "surrogate", "function"],
)
async def test_a_result_that_is_not_json_is_told_and_the_call_has_happened(
    gate: Toolgate, result: Any
) -> None:
    async def gives() -> Any:
        return result

    gate.add(tool(effect="irreversible")(gives))
    output = await gate.call("gives", caller=ME)
    assert output.error is not None
    assert (output.status, output.error.code) == ("error", "invalid_output")
    assert "ran, but" in output.error.message
    assert await states(gate) == [("gives", "succeeded", "invalid_output")]


class Reading(BaseModel):
    value: float | None = None


@dataclasses.dataclass
class Sample:
    reading: Reading
    _scratch: float = NAN


class Limit(Enum):
    NONE = INFINITY


@pytest.mark.req("P1", "X5")
@pytest.mark.parametrize(
    "result",
    [
        NAN,
        [1.5, -INFINITY],
        {"a": {"b": [NAN]}},
        Reading(value=NAN),
        Sample(Reading(value=INFINITY)),
        Limit.NONE,
    ],
)
async def test_a_result_that_json_has_no_number_for_is_told_and_not_made_null(
    gate: Toolgate, result: Any
) -> None:
    async def gives() -> Any:
        return result

    gate.add(tool(effect="irreversible")(gives))
    output = await gate.call("gives", caller=ME)
    assert output.error is not None
    assert output.error.code == "invalid_output"
    assert "no word for NaN and infinity" in output.error.message
    assert await states(gate) == [("gives", "succeeded", "invalid_output")]


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("result", "data"),
    [
        ([None, "null"], [None, "null"]),
        (Sample(Reading()), {"reading": {"value": None}}),
        ([None, dt.date(2026, 1, 2)], [None, "2026-01-02"]),
    ],
)
async def test_a_null_that_was_meant_stays_one(gate: Toolgate, result: Any, data: Any) -> None:
    async def gives() -> Any:
        return result

    gate.add(tool(effect="pure")(gives))
    assert (await gate.call("gives", caller=ME)).data == data


async def test_a_result_cannot_be_changed_afterwards_by_the_tool(gate: Toolgate) -> None:
    kept: list[int] = [1]

    @tool(effect="pure")
    async def gives() -> list[int]:
        return kept

    gate.add(gives)
    output = await gate.call("gives", caller=ME)
    kept.append(2)
    assert output.data == [1]


@pytest.mark.req("P1")
async def test_every_shape_of_function_runs(gate: Toolgate) -> None:
    class Desk:
        async def method(self, text: str) -> str:
            return text

        @staticmethod
        def static(text: str) -> str:
            return text

    def later(text: str) -> Any:
        async def run() -> str:
            return text

        return run()

    class Repeats:
        async def __call__(self, text: str) -> str:
            return text

    def joined(left: str, text: str) -> str:
        return left + text

    gate.add(Desk().method, Desk.static, later)
    gate.add(Repeats(), name="object")
    gate.add(functools.partial(joined, left=""), name="partial")
    for name in ("method", "static", "later", "object", "partial"):
        assert (await gate.call(name, {"text": "x"}, caller=ME)).data == "x"


@pytest.mark.req("P1")
async def test_a_parameter_of_the_type_call_is_given_and_never_asked_for(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def who(greeting: str, me: Call) -> dict[str, str]:
        return {"id": me.id, "says": f"{greeting} {me.caller.agent}", "tool": me.spec.name}

    [spec] = gate.add(who)
    assert list(spec.input_schema.value()["properties"]) == ["greeting"]
    output = await gate.call("who", {"greeting": "hi"}, caller=ME)
    assert output.data == {"id": output.call_id, "says": "hi billing", "tool": "who"}
    with pytest.raises(InvalidArguments):
        await gate.call("who", {"greeting": "hi", "me": "somebody else"}, caller=ME)


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{module: no_such_module_here, function: f}", "cannot be imported"),
        ("{module: math, function: no_such}", "has no function"),
        ("{module: math, function: pi}", "is not a function"),
        ("{module: math}", "names no module and function"),
        ("{}", "names no module and function"),
        ("{module: [1], function: f}", "names no module and function"),
        ("{module: builtins, function: dict}", "is a class"),
        ("{module: builtins, function: min}", "does not say which arguments"),
        ("{builtin: no_such}", "not part of this version"),
    ],
)
async def test_a_function_that_is_not_there_makes_one_tool_unusable_and_no_other(
    tmp_path: Path, config: str, says: str
) -> None:
    (tmp_path / "tools").mkdir()
    text = f"tools: [{{name: odd, provider: python, config: {config}, effect: pure}}]"
    (tmp_path / "tools" / "odd.yaml").write_text(text, "utf-8")
    async with open_gate(tmp_path) as gate:
        assert says in (await gate.explain("odd", caller=ME)).deciding.reason
        with pytest.raises(ToolNotFound):
            await gate.call("odd", caller=ME)
        assert (await gate.call("echo", {"text": "x"}, caller=ME)).ok


@pytest.mark.req("X1")
async def test_an_output_reads_well_to_people_and_machines(gate: Toolgate) -> None:
    output = await gate.call("echo", {"text": "hi"}, caller=ME)
    machine = orjson.loads(orjson.dumps(output.to_machine()))
    assert machine | {"call_id": "", "duration_ms": 0} == {
        "ok": True,
        "status": "success",
        "data": {"text": "hi"},
        "error": None,
        "call_id": "",
        "cached": False,
        "duration_ms": 0,
        "side_effects": ["read_only"],
        "protocol_version": 1,
    }
    assert output.to_human() == '{\n  "text": "hi"\n}'
    assert Output(status="success", data="plain").to_human() == "plain"


async def test_a_name_that_is_taken_is_refused_whole(gate: Toolgate) -> None:
    @tool(effect="pure", name="echo")
    async def mine(text: str) -> str:
        return text

    with pytest.raises(NameClash, match="echo"):
        gate.add(pay, mine)
    assert gate.catalog.current.get("pay") is None
    assert (await gate.call("echo", {"text": "x"}, caller=ME)).data == {"text": "x"}
