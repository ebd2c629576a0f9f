"""What comes out is JSON, or the call is told to have happened without it."""

import dataclasses
import datetime as dt
from enum import Enum, StrEnum
from math import inf, nan
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from tests.house import ME, states
from toolgate import Output, Toolgate, tool


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
    _scratch: float = nan


class Limit(Enum):
    NONE = inf


@pytest.mark.req("P1", "X5")
@pytest.mark.parametrize(
    "result",
    [
        nan,
        [1.5, -inf],
        {"a": {"b": [nan]}},
        Reading(value=nan),
        Sample(Reading(value=inf)),
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
        "untrusted": False,
    }
    assert output.to_human() == '{\n  "text": "hi"\n}'
    assert Output(status="success", data="plain").to_human() == "plain"
