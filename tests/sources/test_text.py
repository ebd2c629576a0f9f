"""YAML and JSON as plain values; hostile text is refused early, with its line.

Each guard is shown with what it stops, what it lets through, and what happens without it.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.problem import Problem
from toolgate.text import document as text_
from toolgate.text import yaml_text
from toolgate.text.document import MAX_BYTES


def value(text: str, file: str = "a.yaml") -> Any:
    return parse(text.encode(), file=file).value


def refusal(raw: str | bytes, file: str = "a.yaml") -> Problem:
    with pytest.raises(InvalidSpecs) as refused:
        parse(raw.encode() if isinstance(raw, str) else raw, file=file)
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    assert problem.file == file
    return problem


@pytest.mark.req("C2")
def test_yaml_is_read_by_the_rules_of_1_2() -> None:
    text = """
    no: no
    yes: on
    flags: [true, False, ~, null, ]
    numbers: [1, -2, 0x1F, 0o17, 1.5, .5, 1e3, 010]
    texts: ['1', "2", 12:30:00, 1_000, 2020-01-01, a, '']
    empty:
    """
    assert value(text) == {
        "no": "no",
        "yes": "on",
        "flags": [True, False, None, None],
        "numbers": [1, -2, 31, 15, 1.5, 0.5, 1000.0, 10],
        "texts": ["1", "2", "12:30:00", "1_000", "2020-01-01", "a", ""],
        "empty": None,
    }


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


WORDS = st.text('ab{}[],: \n"\\é', max_size=5)
PLAIN = st.recursive(
    st.integers(0, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.req("C2")
@given(document=JSON, indent=st.sampled_from([None, 2]))
def test_any_json_is_read_as_what_it_says(document: Any, indent: int | None) -> None:
    assert value(json.dumps(document, indent=indent), "a.json") == document


@pytest.mark.req("C2")
@given(document=st.lists(JSON, max_size=3) | st.dictionaries(st.text("abc"), JSON, max_size=3))
def test_json_means_the_same_in_a_yaml_file(document: Any) -> None:
    assert value(json.dumps(document), "a.yaml") == document


def _steps(node: Any, at: st.DataObject) -> Iterator[str | int]:
    """The way to some part of a value."""
    while isinstance(node, (dict, list)) and node:
        inner = cast("dict[str, Any] | list[Any]", node)
        keys = sorted(inner) if isinstance(inner, dict) else list(range(len(inner)))
        part: Any = at.draw(st.sampled_from(keys))
        yield part
        node = cast("Any", inner)[part]


@pytest.mark.req("C2")
@given(document=st.dictionaries(st.text('ab{}[],: \n"\\é'), PLAIN, max_size=4), at=st.data())
def test_json_and_yaml_find_the_same_lines(document: dict[str, Any], at: st.DataObject) -> None:
    written = json.dumps(document, indent=1, ensure_ascii=False)
    found = parse(written.encode(), file="a.json")
    path = tuple(_steps(document, at))
    with_yaml = yaml_text.Lines(written, yaml_text.Limits(10**6, 10**6))
    assert found.line_of(path) == with_yaml(path)
    assert found.line_of((*path, "nothing", 7)) == found.line_of(path)


@pytest.mark.req("C2")
def test_the_line_of_a_part_is_that_of_its_key_or_of_what_is_around_it() -> None:
    found = parse(b"# first\ntools:\n  - name: a\n    config:\n      x: 1\n", file="a.yaml")
    assert found.line_of(("tools", 0, "config", "x")) == 5
    assert found.line_of(("tools", 0, "config", "y")) == 4
    assert found.line_of(("tools", 0)) == 3
    assert found.line_of(("other",)) == 2


@pytest.mark.req("C2")
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tools:\n  - &a {name: b}\n  - *a\n", 3, "uses the alias *a"),
        ("tools: &a [*a]\n", 1, "uses the alias *a"),
        ("tools:\n  - <<: {name: b}\n", 2, "uses a merge key"),
        ("tools: !!python/name:os.system x\n", 1, "uses the tag"),
        ("\ntools: !a []\n", 2, "uses the tag"),
        ("!!str tools: []\n", 1, "uses the tag"),
        ("a: 1\nb: 2\na: 3\n", 3, "has the key 'a' twice"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a:\n\t- b\n", 2, "is not YAML"),
        ("a: [\n", 2, "is not YAML"),
        ("a: 1\nb: \x00\n", 2, "control characters are not allowed"),
        ("a: .inf\n", 1, "holds .inf"),
        ("a: 1\nb: -1e999\n", 2, "holds -1e999"),
        ("[a]: 1\n", 1, "has a key that is not a text"),
        ("? {a: b}\n: 1\n", 1, "has a key that is not a text"),
        ("a: " + "[" * 70 + "\n", 1, "nested deeper than 64 levels"),
        ("a:\n" + "- 1\n" * 40_000, 29_999, "more than 30,000 keys and values"),
    ],
)
def test_yaml_that_is_not_taken_is_told_with_its_line(text: str, line: int, said: str) -> None:
    problem = refusal(text)
    assert said in problem.message
    assert problem.line == line


@pytest.mark.req("C2")
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', 3, "has the key 'a' twice"),
        ('{"a": 1,\n "\\u0061": 3}', 2, "has the key 'a' twice"),
        ('{"b": "a",\n"a": {"a":\n 1, "c": "a",\n "a": "\\""}}', 4, "has the key 'a' twice"),
        ('{"a": 1,\n x}', 2, "is not JSON"),
        ('{"a": 1', 1, "is not JSON"),
        ("{'a': 1}", 1, "is not JSON"),
        ('{"NaN":\n "NaN", "a":\n NaN}', 3, "holds NaN"),
        ('{"a":\n -Infinity}', 2, "holds -Infinity"),
        ('{"a":\n\n 1e999}', 3, "holds 1e999"),
        ("[" + "9" * 5000 + "]", None, "thousands of digits"),
        ("[" * 100_000, None, "nested far too deep"),
        ("", 1, "is not JSON"),
        ("tools: []", 1, "is not JSON"),
    ],
)
def test_json_that_is_not_taken_is_told_with_its_line(
    text: str, line: int | None, said: str
) -> None:
    problem = refusal(text, "a.json")
    assert said in problem.message
    assert problem.line == line


@pytest.mark.req("C2")
def test_bytes_that_are_no_text_are_refused() -> None:
    assert refusal(b"a: 1\nb: \xff\n").line == 2
    assert "not UTF-8" in refusal("a: 1".encode("utf-16")).message
    assert value("\ufeffa: 1") == {"a": 1}


@pytest.mark.req("C2")
def test_a_text_that_is_too_large_is_refused_before_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = b" " * (MAX_BYTES + 1)
    assert "at most 8,388,608 are read" in refusal(large).message
    assert "larger than 2,097,152 bytes of YAML" in refusal(b"a" * 2_200_000).message
    assert value(json.dumps(["a" * 3_000_000]), "a.json") == ["a" * 3_000_000]
    monkeypatch.setattr(text_, "MAX_BYTES", 10**9)
    monkeypatch.setattr(yaml_text, "MAX_BYTES", 10**9)
    assert parse(large, file="a.yaml").value is None


@pytest.mark.req("C2")
def test_an_alias_bomb_is_refused_and_would_be_large_otherwise() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"
    assert "uses the alias *a" in refusal(bomb).message
    without = yaml.safe_load(bomb)
    assert json.dumps(without["d"]).count("x") == 16
    assert value("a: &a [x, x]\n") == {"a": ["x", "x"]}, "an anchor that nobody uses is harmless"


@pytest.mark.req("C2")
def test_a_python_tag_is_refused_and_would_run_otherwise() -> None:
    hostile = "a: !!python/object/apply:os.getpid []"
    assert "python/object/apply:os.getpid" in refusal(hostile).message
    assert isinstance(yaml.unsafe_load(hostile)["a"], int)


@pytest.mark.req("C2")
def test_too_many_values_are_refused_and_would_be_read_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "a: [" + "1, " * 40_000 + "1]"
    assert "more than 30,000" in refusal(text).message
    monkeypatch.setattr(yaml_text, "MAX_VALUES", 10**9)
    assert len(value(text)["a"]) == 40_001


@pytest.mark.req("C2")
def test_a_message_never_repeats_a_long_text() -> None:
    long = "k" * 100_000
    for text in (f"{long}: 1\n{long}: 2", f"a: !{long} 1", f"a: *{long}", f"a: 1{long}\n- b"):
        assert len(refusal(text).message) < 200


@pytest.mark.req("C2")
def test_the_slower_parser_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast: Any = yaml_text._PARSER  # pyright: ignore[reportPrivateUsage]
    assert fast is yaml.CSafeLoader, "the fast one is used where it is there"
    monkeypatch.setattr(yaml_text, "_PARSER", yaml.SafeLoader)
    assert value("tools:\n  - {name: a, timeout: 1.5}") == {
        "tools": [{"name": "a", "timeout": 1.5}]
    }
    assert refusal("a: 1\nb: \x00\n").line == 2
    assert refusal("a: 1\na: 2\n").line == 2
    assert refusal("a: [\n").line == 2
