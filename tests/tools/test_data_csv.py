"""CSV and JSON: what is written is read again, and a spreadsheet runs none of it."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolgate.tools.data.reading_csv import records
from toolgate.tools.data.writing_csv import written

pytestmark = pytest.mark.req("T1", "T2")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.lists(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
    unique=True,
)
WHOLE = st.integers(-(10**17), 10**17)
REAL = st.floats(allow_nan=False, allow_infinity=False, width=32).map(float)
DELIMITERS = st.sampled_from(["comma", "semicolon", "tab", "pipe"])


def csv_of(rows: list[dict[str, Any]], **how: Any) -> str:
    asked: dict[str, Any] = {
        "columns": [],
        "delimiter": "comma",
        "header": True,
        "guard": False,
        "flatten": False,
        "newline": "lf",
    }
    return written(data=rows, **(asked | how))["csv"]


def rows_of(text: str, **how: Any) -> list[dict[str, Any]]:
    asked: dict[str, Any] = {
        "delimiter": "comma",
        "quote": '"',
        "header": True,
        "types": True,
        "columns": [],
    }
    return records(text=text, **(asked | how))["rows"]


@settings(max_examples=50, deadline=None)
@given(data=st.data(), names=NAMES, delimiter=DELIMITERS, newline=st.sampled_from(["lf", "crlf"]))
def test_texts_come_back_as_they_were(
    data: st.DataObject, names: list[str], delimiter: str, newline: str
) -> None:
    row = st.fixed_dictionaries(dict.fromkeys(names, TEXTS))
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    text = csv_of(rows, delimiter=delimiter, newline=newline)
    assert rows_of(text, delimiter=delimiter, types=False) == rows


@settings(max_examples=50, deadline=None)
@given(data=st.data(), names=NAMES, delimiter=DELIMITERS)
def test_columns_of_one_kind_come_back_with_their_types(
    data: st.DataObject, names: list[str], delimiter: str
) -> None:
    kinds = {
        name: data.draw(st.sampled_from([WHOLE, REAL.filter(lambda one: one % 1), st.booleans()]))
        for name in names
    }
    row = st.fixed_dictionaries({name: kind | st.none() for name, kind in kinds.items()})
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    assert rows_of(csv_of(rows, delimiter=delimiter), delimiter=delimiter) == rows


@settings(max_examples=50, deadline=None)
@given(number=st.from_regex(r"[0-9]{1,25}", fullmatch=True))
def test_no_digit_is_ever_lost(number: str) -> None:
    (row,) = rows_of(f"n\n{number}\n")
    assert str(row["n"]) == number


@settings(max_examples=100, deadline=None)
@example("123456789012345678")
@example("0.10000000000000001")
@example("1e-400")
@given(
    number=st.from_regex(r"-?[1-9][0-9]{0,18}", fullmatch=True)
    | st.from_regex(r"[0-9]\.[0-9]{1,20}([eE]-?[0-9]{1,3})?", fullmatch=True)
)
def test_no_digit_is_lost_among_fractions(number: str) -> None:
    first, second = (row["n"] for row in rows_of(f"n\n{number}\n0.5\n"))
    if isinstance(first, str):
        assert (first, second) == (number, "0.5")
    else:
        assert Decimal(repr(first)) == Decimal(number)
        assert second == 0.5


@settings(max_examples=50, deadline=None)
@given(start=st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n=", " =", "＝"]), rest=TEXTS)  # noqa: RUF001
def test_no_guarded_cell_begins_like_a_formula(start: str, rest: str) -> None:
    (row,) = rows_of(csv_of([{"a": start + rest}], guard=True), types=False)
    first = row["a"].lstrip()[:1]
    assert first not in ("=", "+", "-", "@", "＝") or row["a"].strip()[1:].isdecimal()  # noqa: RUF001
    (bare,) = rows_of(csv_of([{"a": start + rest}], guard=False), types=False)
    assert bare["a"] == start + rest


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.sampled_from('a1,;"\t\n\r|= '), max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    rows = rows_of(text, delimiter="auto")
    assert all(len(row) == len(rows[0]) for row in rows)
