"""What goes in is what the schema says, and JSON; with anything else nothing runs."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tests.executor.tools import pay
from tests.house import ME, open_gate, states
from toolgate import Toolgate, tool
from toolgate.errors import InvalidArguments, InvalidRequest


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


@pytest.mark.req("X2", "X5")
@pytest.mark.parametrize("value", [nan, inf, -inf, [None, {"deep": nan}]])
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
