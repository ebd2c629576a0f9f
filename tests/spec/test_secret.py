"""What a schema marks as secret is kept nowhere and repeated nowhere, however deep it stands."""

import string
from enum import Enum
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import InvalidArguments
from toolgate.spec.schema import Schema
from toolgate.spec.secret import HIDDEN, UNTOLD, secret_names, without_secrets, without_values

pytestmark = pytest.mark.req("O2")
CANARY = "canary-5ec7"
SECRET: dict[str, Any] = {"type": "string", "format": "password", "writeOnly": True}
PLAIN: dict[str, Any] = {"type": "string"}
DEFS: dict[str, Any] = {
    "token": SECRET,
    "tokens": {"items": {"$ref": "#/$defs/token"}},
    "either": {"anyOf": [PLAIN, SECRET]},
}


def kept(schema: dict[str, Any], args: Any) -> Any:
    return without_secrets(orjson.dumps(schema), args)


def names(schema: object) -> frozenset[str] | None:
    return secret_names(orjson.dumps(schema))


def places(mark: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every way in which a property's own value, or what it lists, can have this schema."""
    return {
        "itself": mark,
        "items": {"type": "array", "items": mark},
        "items of items": {"items": {"items": mark}},
        "listed items": {"items": [PLAIN, mark]},
        "prefixItems": {"prefixItems": [PLAIN, mark]},
        "additionalItems": {"items": [PLAIN], "additionalItems": mark},
        "unevaluatedItems": {"prefixItems": [PLAIN], "unevaluatedItems": mark},
        "contains": {"contains": mark},
        "anyOf": {"anyOf": [{"type": "null"}, {"type": "array", "items": mark}]},
        "allOf": {"allOf": [{"items": mark}]},
        "oneOf": {"oneOf": [PLAIN, mark]},
        "if": {"if": mark},
        "then": {"if": PLAIN, "then": mark},
        "else": {"if": PLAIN, "else": {"items": mark}},
        "dependentSchemas": {"dependentSchemas": {"a": mark}},
        "dependencies": {"dependencies": {"a": mark, "b": ["c"]}},
        "contentSchema": {"type": "string", "contentSchema": {"properties": {"x": mark}}},
    }


REFERENCES: dict[str, dict[str, Any]] = {
    "a reference": {"$ref": "#/$defs/token"},
    "a reference to a reference": {"$ref": "#/$defs/tokens"},
    "an encoded reference": {"$ref": "#/%24defs/token"},
    "a reference into a list": {"$ref": "#/$defs/either/anyOf/1"},
    "a list of references": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/token"}}]},
    "an anchor": {"$ref": "#somewhere"},
    "a moving reference": {"items": {"$dynamicRef": "#somewhere"}},
    "a moving reference of old": {"$recursiveRef": "#"},
    "a reference to nothing": {"$ref": "#/$defs/missing"},
    "a reference to elsewhere": {"$ref": "other.json#/token"},
}


@pytest.mark.parametrize(
    "place", [*places(SECRET).values(), *REFERENCES.values()], ids=orjson.dumps
)
def test_a_property_with_a_secret_inside_is_hidden_as_a_whole(place: dict[str, Any]) -> None:
    schema = {"properties": {"keys": place, "b": PLAIN}, "$defs": DEFS}
    for value in (CANARY, [CANARY], [["x", CANARY]], {"a": [CANARY]}):
        assert kept(schema, {"keys": value, "b": "fine"}) == {"keys": HIDDEN, "b": "fine"}
        deep = {"list": [{"keys": value, "b": "fine"}]}
        assert kept({"properties": {"list": {"items": schema}}} | schema, deep) == {
            "list": [{"keys": HIDDEN, "b": "fine"}]
        }


@pytest.mark.parametrize("place", [*places(PLAIN).values(), {"not": SECRET}], ids=orjson.dumps)
def test_the_same_places_without_a_mark_are_kept(place: dict[str, Any]) -> None:
    args = {"keys": [CANARY], "b": "fine"}
    assert kept({"properties": {"keys": place, "b": PLAIN}}, args) == args


def test_a_secret_under_a_name_inside_hides_that_name_only() -> None:
    login = {"type": "object", "properties": {"user": PLAIN, "password": SECRET}}
    schema = {"properties": {"logins": {"type": "array", "items": login}}}
    args = {"logins": [{"user": "ann", "password": CANARY}]}
    assert kept(schema, args) == {"logins": [{"user": "ann", "password": HIDDEN}]}


@pytest.mark.parametrize(
    "schema",
    [
        SECRET,
        {"anyOf": [{"$ref": "#/$defs/token"}], "$defs": DEFS},
        {"$ref": "#somewhere"},
        {"properties": {"a": {"additionalProperties": {"items": SECRET}}}},
        {"properties": {"a": {"patternProperties": {"^x": {"anyOf": [{"items": SECRET}]}}}}},
        {"unevaluatedProperties": {"then": SECRET}},
        {"propertyNames": SECRET},
    ],
)
def test_where_any_name_may_hold_a_secret_nothing_is_kept(schema: dict[str, Any]) -> None:
    assert names(schema) is None
    assert kept(schema, {"a": {"x1": [CANARY]}}) == {}


@pytest.mark.parametrize(
    "word", ["allOf", "items", "patternProperties", "properties", "dependencies", "$ref", "format"]
)
def test_a_property_may_be_called_like_a_keyword(word: str) -> None:
    for other in (True, PLAIN):
        assert names({"properties": {word: other, "key": SECRET}}) == {"key"}


def test_schemas_that_lead_back_to_themselves_come_to_an_end() -> None:
    tree = {"properties": {"name": PLAIN, "below": {"items": {"$ref": "#"}}}}
    assert names(tree) == frozenset()
    circle = {
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/z"}},
        "$defs": {
            "x": {"anyOf": [{"$ref": "#/$defs/y"}, {"items": {"$ref": "#/$defs/x"}}]},
            "y": {"items": {"anyOf": [{"$ref": "#/$defs/x"}, SECRET]}},
            "z": {"allOf": [{"$ref": "#/$defs/z"}]},
        },
    }
    assert names(circle) == {"a"}


@pytest.mark.parametrize(("last", "hidden"), [(SECRET, {"a"}), (PLAIN, set[str]())])
def test_references_that_double_at_every_step_are_each_followed_once(
    last: dict[str, Any], hidden: set[str]
) -> None:
    steps = 400
    defs: dict[str, Any] = {
        f"d{at}": {
            "allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2,
            "anyOf": [{"items": {"$ref": f"#/$defs/d{at + 1}"}}] * 2,
        }
        for at in range(steps)
    }
    defs[f"d{steps}"] = last
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}, "b": PLAIN}, "$defs": defs}
    assert names(schema) == hidden


def test_nested_written_schemas_are_each_looked_at_a_few_times() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"contentSchema": schema}
    assert names({"properties": {"a": schema}}) == frozenset()


def test_what_is_no_json_is_hidden_beside_a_secret() -> None:
    args = {"b": (1, {"password": CANARY}), "c": b"raw"}
    assert kept({"properties": {"password": SECRET}}, args) == {
        "b": [1, {"password": HIDDEN}],
        "c": HIDDEN,
    }


def test_a_name_that_is_no_plain_text_may_be_the_name_of_a_secret() -> None:
    class Name(str, Enum):  # noqa: UP042  its hash is not that of its text
        FIRST = "password"

    schema = {"properties": {"password": SECRET}, "minProperties": 9}
    assert kept(schema, {Name.FIRST: CANARY}) == {Name.FIRST: HIDDEN}
    assert CANARY in repr(Schema.of(schema).problems({Name.FIRST: CANARY}))
    assert CANARY not in repr(told(schema, {Name.FIRST: CANARY}))


LONG: dict[str, Any] = {"type": "string", "maxLength": 1, "writeOnly": True}
TEXTS = st.text(string.ascii_uppercase + string.digits, min_size=8, max_size=300)
WRAPS = st.lists(
    st.sampled_from(
        ["items", "prefixItems", "contains", "anyOf", "allOf", "then", "ref", "named", "unnamed",
         "pattern", "dependent", "else"]
    ),
    max_size=5,
)  # fmt: skip


def around(one: str, schema: Any, held: Any) -> tuple[Any, Any]:
    """One step further out: a schema, and a value that has the last one inside."""
    match one:
        case "items" | "contains":
            return {one: schema}, [held]
        case "prefixItems":
            return {one: [True, schema]}, ["x", held]
        case "anyOf" | "allOf":
            return {one: [schema]}, held
        case "then" | "else":
            return {"if": one == "then", one: schema}, held
        case "dependent":
            inner = {"properties": {"n": schema}}
            return {"dependentSchemas": {"a": inner}}, {"a": 1, "n": held}
        case "named":
            return {"properties": {"inner": schema}}, {"inner": held}
        case "unnamed":
            return {"additionalProperties": schema}, {"other": held}
        case _:
            return {"patternProperties": {"^x": schema}}, {"x1": held}


def wrapped(how: list[str], value: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema with a secret so deep, and arguments that hold this value there."""
    defs: dict[str, Any] = {}
    schema: Any = LONG
    held: Any = value
    for at, one in enumerate(how):
        if one == "ref":
            defs[f"d{at}"], schema = schema, {"$ref": f"#/$defs/d{at}"}
        else:
            schema, held = around(one, schema, held)
    root: dict[str, Any] = {"properties": {"top": schema, "plain": {"type": "integer"}}}
    root |= {"$defs": defs, "minProperties": 9, "required": ["absent"]}
    return root, {"top": held, "plain": "seen"}


@given(WRAPS, TEXTS)
def test_no_random_secret_is_kept_or_repeated(how: list[str], value: str) -> None:
    schema, args = wrapped(how, value)
    compiled = Schema.of(schema)
    start = value[:8]
    assert start not in repr(without_secrets(compiled.raw, args))
    problems = compiled.problems(args)
    assert start in repr(problems)
    error = InvalidArguments("act", without_values(compiled.raw, args, problems))
    assert start not in error.message + repr(error.details)
    assert '"absent" is a required property' in error.message


def told(schema: dict[str, Any], args: Any) -> list[tuple[str, str]]:
    compiled = Schema.of(schema)
    return list(without_values(compiled.raw, args, compiled.problems(args)))


def test_ordinary_values_are_still_told() -> None:
    schema = {
        "properties": {"password": LONG, "n": {"type": "integer"}, "o": {"minProperties": 2}},
        "additionalProperties": False,
    }
    args = {"password": CANARY, "n": "seven", "o": {"a": 1}, "extra": 1}
    assert sorted(told(schema, args)) == [
        (
            "",
            (
                "Additional properties are not allowed ('extra' was unexpected); "
                "known: 'password', 'n', 'o'"
            ),
        ),
        ("/n", '"seven" is not of type "integer"'),
        ("/o", '{"a":1} has less than 2 properties'),
        ("/password", UNTOLD),
    ]


def test_a_pointer_ends_where_the_secret_begins() -> None:
    vault = {"writeOnly": True, "additionalProperties": {"type": "integer"}}
    schema = {"properties": {"a/b": {"properties": {"vault": vault}}}}
    assert told(schema, {"a/b": {"vault": {CANARY: "x"}}}) == [("/a~1b/vault", UNTOLD)]
    unnamed = {"properties": {"vault": {"propertyNames": {"secret": True}, **vault}}}
    assert told(unnamed, {"vault": {CANARY: "x"}}) == [("/vault", UNTOLD)]


def test_a_secret_that_stands_in_another_place_too_is_not_told_there() -> None:
    schema = {"properties": {"password": SECRET, "pin": {"secret": True}, "n": {"type": "null"}}}
    assert CANARY not in repr(told(schema, {"password": CANARY, "n": CANARY}))
    assert "73914" not in repr(told(schema, {"pin": 73914, "n": 73914}))
    assert CANARY in repr(told(schema, {"password": "another", "n": CANARY}))
    assert told(schema, {"pin": 10**5_000, "n": 1}) == [("/n", '1 is not of type "null"')]
