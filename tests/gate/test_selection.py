"""Names with stars: what they take, and that no list of them takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate import Caller, Context
from toolgate.errors import InvalidRequest
from toolgate.gate.groups import groups_of
from toolgate.gate.selection import selection
from toolgate.spec.tool import ToolSpec

few = st.text("ab*", max_size=8)


def takes(selector: str, name: str) -> bool:
    spec = ToolSpec(name=name)
    return selection((selector,)).has(spec, groups_of(spec))


@pytest.mark.req("G4")
@given(few, st.text("ab", min_size=1, max_size=8))
def test_a_star_stands_for_anything(selector: str, name: str) -> None:
    pattern = ".*".join(re.escape(part) for part in selector.split("*"))
    assert takes(selector, name) is (re.fullmatch(pattern, name) is not None)


@pytest.mark.req("G4")
@pytest.mark.parametrize("selector", ["*" * 120 + "~", "*a" * 60 + "~", "a*" * 60 + "~"])
def test_many_stars_take_no_longer_than_one(selector: str) -> None:
    """A matcher that goes back would not end within the test's time."""
    assert not takes(selector, "a" * 64)
    assert takes(selector.removesuffix("~") + "*", "a" * 64)


@pytest.mark.req("G4")
def test_a_context_has_an_end() -> None:
    fits = Context(deny=("x",) * 64, facts=(("ticket", "t" * 4_090),))
    assert Caller(tenant="acme", context=fits).context is fits
    with pytest.raises(InvalidRequest, match="at most 64 selectors"):
        Context(deny=("x",) * 65)
    with pytest.raises(InvalidRequest, match="4,096 characters"):
        Context(facts=(("ticket", "t" * 4_091),))
