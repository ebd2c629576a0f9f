"""JSON with a model's dirt: read as itself in time that grows with the text, or not at all."""

import ast
import contextlib
import json
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages.spoken import Call, openai
from toolgate.messages import tolerant, written
from toolgate.messages.read import read
from toolgate.messages.tolerant import UnclearError, object_end, read_object
from toolgate.spec.document import MAX_DEPTH, MAX_NODES

pytestmark = pytest.mark.req("X8")

TAKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "single quotes": ("{'a': 'b'}", {"a": "b"}),
    "both quotes": ("{'a': \"it's\", \"b\": 'say \"no\"'}", {"a": "it's", "b": 'say "no"'}),
    "escaped quotes": (r"""{'a': 'it\'s \"x\"'}""", {"a": "it's \"x\""}),
    "escaped backslashes": (r"""{'a': '\\', 'b': '\\\'', 'c': '\\"'}""",
                            {"a": "\\", "b": "\\'", "c": '\\"'}),
    "escaped characters": (r"{'a': '\n\t\u00e9\ud83d\ude00'}", {"a": "\n\té😀"}),
    "Python's words": ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
    "JSON's words": ("{'a': true, 'b': false, 'c': null}", {"a": True, "b": False, "c": None}),
    "numbers": ("{'a': [1, -2, 0.5, 1e3, -0, 18446744073709551615]}",
                {"a": [1, -2, 0.5, 1000.0, 0, 2**64 - 1]}),
    "a comma behind the last": ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
    "raw line breaks": ('{"a": "b\nc\r\n\td"}', {"a": "b\nc\r\n\td"}),
    "no comma between fields": ('{"a": 1\n"b": {} "c": "d" "e": []}',
                                {"a": 1, "b": {}, "c": "d", "e": []}),
    "white space around": (" \n{'a': 1}\t\r\n", {"a": 1}),
    "empty brackets": ("{'a': {}, 'b': []}", {"a": {}, "b": []}),
    "nothing": ("{ }", {}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "meant"), TAKEN.values(), ids=TAKEN.keys())
def test_odd_punctuation_is_read_as_it_is_meant(text: str, meant: dict[str, Any]) -> None:
    found = read_object(text)
    assert found == meant
    assert json.dumps(found) == json.dumps(meant), "the types are those that were written"


REFUSED = {
    "two texts in a list": ("{'a': ['b' 'c']}", "a ',' or a ']' at \"'c'"),
    "two numbers in a list": ("{'a': [1 2]}", "a ',' or a ']' at '2]"),
    "two texts as a value": ("{'a': 'b' 'c'}", "a ':' at '}'"),
    "two numbers as a value": ("{'a': 1 2}", "a ',' or a '}' at '2}'"),
    "texts that touch": ("{'a': 'b''c': 1}", "a ',' or a '}' at \"'c'"),
    "a field that touches": ("{'a': 1'b': 2}", "a ',' or a '}' at \"'b'"),
    "a comma first": ("{'a': [, 1]}", "a value at ', 1"),
    "only a comma": ("{,}", "a name in quotes at ',}'"),
    "two commas": ("{'a': 1,, 'b': 2}", "a name in quotes at \", 'b'"),
    "two commas behind the last": ("{'a': [1,,]}", "a value at ',]"),
    "no colon": ("{'a' 1}", "a ':' at '1}'"),
    "two colons": ("{'a':: 1}", "a value at ': 1"),
    "a colon in a list": ("{'a': ['b': 1]}", "a ',' or a ']' at ': 1"),
    "no value": ("{'a': }", "a value at '}'"),
    "no value before a comma": ("{'a': , 'b': 1}", "a value at \", 'b'"),
    "a name without a field": ("{'a'}", "a ':' at '}'"),
    "a name that is a number": ("{1: 2}", "a name in quotes at '1: 2}'"),
    "a name that is a word": ("{None: 2}", "a name in quotes at 'None"),
    "a bare name": ("{a: 1}", "cannot be read at 'a: 1}'"),
    "a bare value": ("{'a': yes}", "cannot be read at 'yes}'"),
    "a word that goes on": ("{'a': Trueish}", "cannot be read at 'Trueish}'"),
    "a name twice": ("{'a': 1, 'a': 1}", "'a' twice"),
    "a name twice, written in two ways": (r"""{'a': 1, "\u0061": 2,}""", "'a' twice"),
    "a name twice, further in": ("{'x': [{'a': {}, 'a': 1}]}", "'a' twice"),
    "a wrong bracket": ("{'a': [1}}", "closes a bracket that is not open"),
    "cut off": ("{'a': 1", "cut off"),
    "cut off behind a comma": ("{'a': 1, ", "cut off"),
    "cut off in a text": ("{'a': 'b", 'cannot be read at "\'b"'),
    "one more bracket": ("{'a': 1}}", "not one JSON object"),
    "two objects": ("{'a': 1} {'b': 1}", "not one JSON object"),
    "a list": ("['a']", "not one JSON object"),
    "a tuple": ("{'a': (1, 2)}", "cannot be read at '(1, 2)}'"),
    "a set": ("{'a': {1, 2}}", "a name in quotes at '1, 2"),
    "bytes": ("{'a': b'c'}", "cannot be read at \"b'c'}\""),
    "an escape of Python": (r"{'a': '\x41'}", r"text that cannot be read: "),
    "an escape of neither": (r"{'a': '\q'}", "text that cannot be read"),
    "an apostrophe escaped for nothing": (r"""{'a': "it\'s"}""", "text that cannot be read"),
    "a stroke that Python keeps escaped": (r"{'a': '\/'}", "text that cannot be read"),
    "a line that goes on": ("{'a': 'b\\\nc'}", "text that cannot be read"),
    "a control character": ("{'a': 'b\0c'}", "text that cannot be read"),
    "half a character": (r"{'a': '\ud800'}", "text that cannot be read"),
    "too large a number": ("{'a': 18446744073709551616}", "beyond 64 bits"),
    "a number without end": ("{'a': 1e999}", "beyond all bounds"),
    "a number that begins with nought": ("{'a': 01}", "cannot be read at '01}'"),
    "a number without a fraction": ("{'a': 1.}", "cannot be read at '1.}'"),
    "another number": ("{'a': 0x10}", "cannot be read at '0x10}'"),
    "no number": ("{'a': NaN}", "cannot be read at 'NaN}'"),
    "a comment": ("{'a': 1 # b\n}", "cannot be read at '# b"),
    "other white space": ("{'a':\u00a01}", "cannot be read at '\\xa01}'"),
    "typographic quotes": ("{“a”: 1}", "cannot be read at '“a”"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_a_guess_is_refused_with_what_and_where(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        read_object(text)


def test_a_reader_that_guesses_joins_texts_and_drops_values() -> None:
    assert ast.literal_eval(REFUSED["two texts in a list"][0]) == {"a": ["bc"]}
    assert ast.literal_eval(REFUSED["a name twice"][0]) == {"a": 1}


def test_depth_and_size_are_bounded_as_in_clean_json() -> None:
    def nested(levels: int, quote: str) -> str:
        inner = "[" * (levels - 1) + "]" * (levels - 1)
        return f"{{{quote}a{quote}:{inner}}}"

    def wide(values: int, quote: str) -> str:
        return f"{{{quote}a{quote}:[{'1,' * (values - 3)}1]}}"

    for shape, most in ((nested, MAX_DEPTH), (wide, MAX_NODES)):
        assert read_object(shape(most, "'")) == read_object(shape(most, '"'))
        told: list[str] = []
        for quote in "'\"":
            with pytest.raises(ValueError, match=r"deeper|more than") as refusal:
                read_object(shape(most + 1, quote))
            told.append(str(refusal.value))
        assert told[0] == told[1]
    with pytest.raises(ValueError, match="nested deeper"):
        read_object("{'a':" + "[" * 100_000)


# Tests of what hostile texts cost count the calls of functions: time depends on the machine.
def steps(run: Callable[[], object]) -> int:
    counted = 0

    def count(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return counted


def called(args: str) -> str:
    return "{'tool_name': 'x', 'tool_args': {" + args + "}}"


CALLED = called("")
HOSTILE: dict[str, Callable[[int], str]] = {
    "escaped apostrophes": lambda n: called("'a': '" + "\\'" * n + "'"),
    "quotes": lambda n: called("'a': '" + '"' * n + "'"),
    "backslashes": lambda n: called("'a': '" + "\\\\" * n + "'"),
    "backslashes without an end": lambda n: "{'tool_name': '" + "\\" * n,
    "a text without an end": lambda n: "{'tool_name': '" + "a" * n,
    "apostrophes": lambda n: "{'tool_name': " + "'" * n,
    "digits": lambda n: called("'a': " + "9" * n + "x"),
    "a fraction": lambda n: called("'a': 0." + "9" * n + "e" + "9" * n + "x"),
    "commas": lambda n: called("'a': [" + "," * n + "]"),
    "values": lambda n: called("'a': [" + "1," * (n // 4) + "]"),
    "fields": lambda n: called("".join(f"'{one}': None\n" for one in range(n // 16))),
    "brackets": lambda n: "{" * n + "tool_name",
    "brackets and names": lambda n: '{"a":' * (n // 4) + "tool_name",
    "closed brackets": lambda n: "{}" * (n // 2) + CALLED,
    "objects": lambda n: '{"a": [1]}' * (n // 8) + CALLED,
    "calls": lambda n: CALLED * (n // 32),
    "names": lambda n: "tool_name" * (n // 8) + CALLED,
    "spaces": lambda n: " " * n + CALLED,
    "lines": lambda n: "\n" * n + CALLED,
    "spaces behind it": lambda n: CALLED + " " * n,
    "spaces within it": lambda n: called(" " * n),
    "spaces and no end": lambda n: "{'tool_name': 1" + " " * n,
    "a fence of many": lambda n: "`" * n + CALLED,
    "fences": lambda n: "```\n" * (n // 4) + CALLED,
    "a fence and spaces": lambda n: "```" + " " * n + "x y" + CALLED,
    "a fence and lines": lambda n: "```\n" + " \n" * (n // 2) + "x y" + CALLED,
    "a fence and a long word": lambda n: "```" + "a" * n + " b" + CALLED,
    "indented lines": lambda n: (" " * 99 + "\n") * (n // 100) + CALLED,
    "quoted lines": lambda n: ">" * n + CALLED,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_text_of_twice_the_size_takes_twice_the_steps(text: Callable[[int], str]) -> None:
    small, large = (steps(lambda n=n: read(text(n), most=10)) for n in (4_000, 8_000))
    built = steps(lambda: text(8_000))
    assert large <= 2.2 * small + built + 50


def test_a_text_that_is_read_from_each_of_its_brackets_would_take_four_times_the_steps() -> None:
    def from_each(text: str) -> None:
        for start in range(0, len(text), 5):
            with contextlib.suppress(UnclearError):
                object_end(text, start)

    small, large = (steps(lambda n=n: from_each('{"a":' * n)) for n in (30, 60))
    assert large > 3 * small


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_longest_hostile_text_is_answered(text: Callable[[int], str]) -> None:
    read(text(100_000), most=10)
    message = openai(Call("c-1", "echo", {}))
    message["tool_calls"][0]["function"]["arguments"] = text(250_000)
    read(message, most=10)


# What a repeat has taken it keeps if a plus stands behind it: it is not tried again with less.
REPEAT = re.compile(r"([*+?]|\{\d+(?:,\d*)?\})([+?]?)")


def goes_back(pattern: str) -> bool:
    plain = re.sub(r"\\.|\[(?:\\.|[^\]\\])+\]|\(\?(?:P<\w+>|[:=!])", "x", pattern)
    return any(
        how[0] in "*+" or how.endswith(",}") for how, keeps in REPEAT.findall(plain) if keeps != "+"
    )


def test_no_pattern_goes_back_over_what_it_has_read() -> None:
    values: list[Any] = [*vars(tolerant).values(), *vars(written).values()]
    patterns = [cast("str", one.pattern) for one in values if type(one) is re.Pattern]
    assert len(patterns) >= 5
    assert [one for one in patterns if goes_back(one)] == []
    assert goes_back(r"^[ \t]*(`{3,}|~{3,})[ \t]*\w*\s*\Z"), "such as this one"
    assert goes_back(r"[ \t]*+`{3,}")


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
objects = st.dictionaries(texts, st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
), max_size=5)  # fmt: skip


def dirty(value: Any, draw: Callable[[list[str]], str]) -> str:
    """A value as a careless model writes it, with the dirt that is drawn."""
    space = draw(["", " ", "\n  "])
    if type(value) is dict:
        pairs = cast("dict[str, Any]", value).items()
        fields = [f"{dirty(name, draw)}:{space}{dirty(of, draw)}" for name, of in pairs]
        parts = [one + draw([",", " ,", ", ", "\n", " "]) for one in fields[:-1]] + fields[-1:]
        return "{" + space + "".join(parts) + (draw(["", ",", " ,\n"]) if fields else "") + "}"
    if type(value) is list:
        items = ",".join(space + dirty(one, draw) for one in cast("list[Any]", value))
        return "[" + items + (draw(["", ",", ",\n"]) if value else "") + "]"
    if value is None or isinstance(value, bool):
        return draw([json.dumps(value), repr(value)])
    if not isinstance(value, str):
        return json.dumps(value)
    plain = json.dumps(value, ensure_ascii=draw(["", "x"]) == "x")
    if draw(["", "raw"]):
        aside = plain.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t")
        plain = aside.replace("\0", "\\\\")
    if draw(["single", "double"]) == "double":
        return plain
    quotes = draw(['\\"', '"'])
    inside = plain[1:-1].replace("\\\\", "\0").replace('\\"', quotes).replace("'", "\\'")
    return "'" + inside.replace("\0", "\\\\") + "'"


@given(objects, st.data())
def test_an_object_with_any_dirt_reads_as_itself(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = dirty(value, lambda choices: data.draw(st.sampled_from(choices)))
    found = read_object(text)
    assert found == value
    assert json.dumps(found) == json.dumps(value), "with its types, in its order"
