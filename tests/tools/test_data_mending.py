"""Mending JSON: proper JSON is left alone, and a text that ends early still says what it said."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgate.errors import ToolError
from toolgate.tools.data.finding_json import parsed
from toolgate.tools.data.mending import Mender

pytestmark = pytest.mark.req("T1", "T2")
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
# Texts without quotes of their own: of those nobody can tell where a broken one ends.
SIMPLE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("abc xyz", min_size=1, max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(value=VALUES)
def test_proper_json_is_read_without_a_mend(value: Any) -> None:
    mender = Mender(orjson.dumps(value).decode())
    assert mender.value() == value
    assert not mender.mends


@settings(max_examples=50, deadline=None)
@given(value=SIMPLE)
def test_what_python_prints_is_read_as_it_was_meant(value: Any) -> None:
    text = repr({"it": value})
    assert parsed(text=text, strict=False)["value"] == {"it": value}


@settings(max_examples=50, deadline=None)
@given(value=SIMPLE, at=st.integers(0, 200))
def test_a_text_that_is_cut_off_is_still_read(value: Any, at: int) -> None:
    text = '{"it": ' + orjson.dumps(value).decode() + "}"
    found = parsed(text=text[: max(at, 1)], strict=False)
    assert isinstance(found["value"], dict)
    assert found["valid"] == (at >= len(text))


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.sampled_from("{}[]\"':,\\ab01 -.#/*\n`…\ud83d"), max_size=40))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        found = parsed(text=text, strict=False)
    except ToolError:
        return
    orjson.dumps(found)


@pytest.mark.parametrize(
    "text",
    [
        "\\'" * 30_000,
        '"' * 60_000,
        "```" * 30_000,
        "{" + "a " * 30_000,
        "' " * 30_000,
        "[" + "/" * 60_000,
        "{" + " " * 60_000 + "x",
        '{"a": "' + 'x" ' * 30_000,
        "[" + "1," * 30_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_long_texts_are_read_once(text: str) -> None:
    seen = 0

    class Counted(Mender):
        def space(self) -> None:
            nonlocal seen
            seen += 1
            super().space()

    start = text.find("{") if "{" in text else max(text.find("["), 0)
    Counted(text, start).value()
    assert seen <= 3 * len(text)
