"""Run by `pytest plugins/units`: the tools are called as an agent would call them."""

from pathlib import Path

import pytest

from toolgate.errors import InvalidRequest
from toolgate.testing.plugin import called

HERE = Path(__file__).parent


def test_a_mile_is_in_kilometres() -> None:
    said = called(HERE, "convert_units", {"value": 26.2188, "unit": "mi", "to": "km"})
    assert said == {"value": 42.1951, "unit": "km"}


def test_the_operator_says_how_many_digits() -> None:
    args = {"value": 100, "unit": "C", "to": "F"}
    assert called(HERE, "convert_units", args, custom_config={"digits": 2})["value"] == 210


def test_kinds_are_not_mixed() -> None:
    with pytest.raises(InvalidRequest, match="Name two units of one kind"):
        called(HERE, "convert_units", {"value": 1, "unit": "kg", "to": "m"})
