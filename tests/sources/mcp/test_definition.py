"""How two definitions differ: whatever changes the fingerprint is shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.sources.mcp.definition import differences, fingerprint

pytestmark = pytest.mark.req("P3")
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def takes(default: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"force": {"default": default}}}
    return {"name": "run", "inputSchema": schema}


@pytest.mark.parametrize(
    ("before", "after", "minus", "plus"),
    [
        (1, True, "1", "true"),
        (0, False, "0", "false"),
        (1, 1.0, "1", "1.0"),
        ([1], [True], "[1]", "[true]"),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, '[{"b":0}]', '[{"b":false}]'),
    ],
)
def test_values_that_python_takes_for_one_are_shown_as_two(
    before: Any, after: Any, minus: str, plus: str
) -> None:
    assert before == after, "the guard-off control"
    assert fingerprint(takes(before)) != fingerprint(takes(after))
    said = differences(takes(before), takes(after))
    assert [line.split(": ", 1)[1] for line in said] == [minus, plus]


@given(VALUES, VALUES)
def test_there_are_differences_to_show_exactly_where_the_fingerprint_is_another(
    before: Any, after: Any
) -> None:
    is_other = fingerprint(takes(before)) != fingerprint(takes(after))
    assert bool(differences(takes(before), takes(after))) == is_other
