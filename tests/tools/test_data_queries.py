"""JMESPath as we run it finds what the library finds, and never does more than it may."""

from typing import Any

import jmespath
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jmespath.exceptions import JMESPathError

from toolgate.errors import ToolError
from toolgate.tools.data.budget import OverspentError
from toolgate.tools.data.querying import LONG, SHORT, found, search

pytestmark = pytest.mark.req("T1", "T2")
DATA: dict[str, Any] = {
    "people": [
        {"name": "Ann", "age": 31, "tags": ["a", "b"], "home": {"city": "Bern"}},
        {"name": "Bob", "age": 25, "tags": [], "home": None},
        {"name": "Cem", "age": 0, "tags": ["c"], "odd": True},
        "no record",
        None,
    ],
    "by": {"x": {"v": 1}, "y": {"v": "two"}, "z": 3},
    "deep": [[1, [2, 3]], [[4]], 5],
    "empty": "",
}
ATOMS = [
    "people", "by", "deep", "empty", "name", "age", "tags", "home", "home.city", "@", "people[0]",
    "people[-1]", "people[1:]", "people[::-1]", "*", "by.*", "by.*.v", "people[*].name", "deep[]",
    "deep[][]", "people[].tags[]", "[name, age]", "{n: name, t: tags}", "`5`", "'a'", "`null`",
    "`true`", "length(@)", "keys(by)", "values(by)", "type(@)", "to_string(@)", "to_array(@)",
    "people[?age > `20`]", "people[?age >= `0` && name].name", "people[?!odd].name",
    "people[?contains(tags, 'a')].name", "people[?name == 'Ann' || odd]", "map(&type(@), deep)",
    "sort_by(people[:3], &age)[*].name", "max_by(people[:3], &age).name", "not_null(zzz, empty)",
    "people[?age].age | sum(@)", "join(', ', people[*].tags[])", "reverse(deep)", "merge(by, `{}`)",
    "people[?starts_with(name, 'A')].name", "people[?home.city == 'Bern'].age", "age < 'a'",
    "people[?age != `25`].name", "people[?tags == `[]`].name", "by.x == by.x", "avg(deep)",
]  # fmt: skip


@pytest.mark.parametrize("query", ATOMS)
def test_a_query_finds_what_the_library_finds(query: str) -> None:
    assert _ours(query, DATA) == _theirs(query, DATA)


@settings(max_examples=80, deadline=None)
@given(
    parts=st.lists(st.sampled_from(ATOMS), min_size=2, max_size=3),
    between=st.sampled_from([" | ", " || ", " && ", " == ", " < "]),
)
def test_queries_of_queries_do_too(parts: list[str], between: str) -> None:
    query = between.join(parts)
    assert _ours(query, DATA) == _theirs(query, DATA)


def _ours(query: str, data: Any) -> Any:
    try:
        return search(orjson.dumps(data).decode(), query)
    except ToolError:
        return "refused"


def _theirs(query: str, data: Any) -> Any:
    try:
        return jmespath.search(query, data)
    except JMESPathError:
        return "refused"
    except TypeError:
        # It compares texts with numbers; here they have no order.
        return None


@pytest.mark.parametrize(
    "query",
    [
        "|".join(["[@,@]"] * 60),
        "|".join(["[@,@][]"] * 60),
        "|".join(["{a: @, b: @}"] * 60),
        "|".join(["join('', [@, @])"] * 60),
        "|".join(["[@,@]"] * 40) + " == " + "|".join(["[@,@]"] * 40),
        "|".join(["[@,@]"] * 40) + " | to_string(@)",
        "|".join(["[@,@]"] * 40) + " | contains(@, @)",
        "|".join(["[to_string(@)]"] * 60),
        "map(&map(&map(&map(&map(&map(&length(@), $), $), $), $), $), $)".replace("$", "`%s`")
        % ((str(["a"] * 60).replace("'", '"'),) * 6),
    ],
    ids=lambda query: str(query)[:24],
)
@pytest.mark.parametrize("most", [SHORT, LONG // 20])
def test_what_grows_without_end_is_ended(query: str, most: int) -> None:
    with pytest.raises((OverspentError, ToolError)):
        found('"ab"' if "join" in query else '["ab"]', query, most)


def test_the_same_query_with_less_to_do_is_answered() -> None:
    assert found('["ab"]', "[@,@][]|[@,@][]", SHORT) == ["ab"] * 4
    assert found('"ab"', "join('', [@, @])", SHORT) == "abab"


@pytest.mark.parametrize("query", ["(" * 3000, "!" * 3000, "a." * 1500 + "a", "[" * 3000])
def test_a_query_that_is_nested_without_end_is_refused(query: str) -> None:
    assert _ours(query, {}) in ("refused", None)
