"""Only a schema that is safe to run on every call gets in.

Each guard is shown three ways: what it stops, what it lets through, and what would happen without.
"""

import json
import socket
import threading
from contextlib import closing
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec import bombs
from tests.spec.bombs import POINTERS, doubling, overlapping, property_x, ring, schema
from tests.spec.specs import SCHEMAS
from toolgate.spec import bounds
from toolgate.spec.bounds import Bounds
from toolgate.spec.document import canonical
from toolgate.spec.schema import MAX_EXPLAINED, Schema

TREE = schema(
    properties={"x": {"$ref": "#/$defs/tree"}},
    **{
        "$defs": {
            "tree": {
                "anyOf": [
                    {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 5},
                    {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 6},
                    {"type": "string"},
                ]
            }
        }
    },
)


def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def anything(document: Any, raw: bytes) -> Bounds:
        return Bounds()

    monkeypatch.setattr(bounds, "check", anything)


def checks(document: dict[str, Any]) -> int:
    return bounds.check(document, canonical(document)).checks


def nested(levels: int, leaf: object) -> object:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def explained(found: Schema, instance: object) -> list[object]:
    """Every schema that was held against a part of the value."""
    return found._validator.evaluate(instance).list()["details"]  # pyright: ignore[reportPrivateUsage]


def evaluated(found: Schema, instance: object) -> int:
    """How many times a validator looked at a schema: a count, where a time would tell nothing."""
    return len(explained(found, instance))


@pytest.mark.req("C1")
def test_a_schema_is_compiled_and_says_what_does_not_fit_and_where() -> None:
    found = Schema.of(property_x(type="array", items={"type": "integer"}))
    assert found.is_valid({"x": [1, 2]})
    assert [pointer for pointer, _ in found.problems({"x": [1, "a", "b"]})] == ["/x/1", "/x/2"]
    assert len(found.problems({"x": ["a"] * 50})) == 10
    assert len(found.problems({"x": ["a"] * 50}, most=3)) == 3


@pytest.mark.req("C1")
@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_older_drafts_are_taken(draft: str) -> None:
    found = Schema.of(schema(**{"$schema": f"http://json-schema.org/{draft}/schema#"}))
    assert found.is_valid({})


@pytest.mark.req("C1")
@pytest.mark.parametrize("refer", POINTERS.values(), ids=POINTERS)
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_definitions_that_double_are_refused_however_they_refer(refer: Any, keyword: str) -> None:
    assert Schema.of(doubling(8, refer=refer, keyword=keyword)).is_valid({}), "positive control"
    with pytest.raises(ValueError, match="expands to more than 10,000 checks"):
        Schema.of(doubling(40, refer=refer, keyword=keyword))


@pytest.mark.req("C1")
@pytest.mark.parametrize("refer", POINTERS.values(), ids=POINTERS)
def test_without_the_bound_the_work_doubles_with_every_level(
    refer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unguarded(monkeypatch)
    small, large = (
        evaluated(Schema.of(doubling(levels, refer=refer)), {"x": "a"}) for levels in (4, 8)
    )
    assert large > 10 * small


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "bomb",
    [
        overlapping(40),
        overlapping(40, back=True),
        bombs.depending(40),
        schema(allOf=[{}] * 10_001),
        schema(items={"contains": {"anyOf": [{"if": {}, "then": {}}] * 5_001}}),
    ],
)
def test_no_way_to_apply_schemas_to_one_value_goes_uncounted(bomb: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expands to more than"):
        Schema.of(bomb)


@pytest.mark.req("C1")
def test_without_the_bound_overlapping_properties_double_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unguarded(monkeypatch)

    def value(levels: int) -> object:
        inner: object = "leaf"
        for _ in range(levels):
            inner = {"a": inner}
        return {"x": inner}

    small, large = (evaluated(Schema.of(overlapping(n)), value(n)) for n in (4, 8))
    assert large > 10 * small


@pytest.mark.req("C1")
def test_the_count_is_of_one_path_so_that_a_broad_schema_is_cheap() -> None:
    broad = schema(properties={f"p{at}": {"anyOf": [{}, {}]} for at in range(3000)})
    assert checks(broad) == 4
    assert Schema.of(broad).is_valid({"p1": 1})


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "loop",
    [
        ring(1),
        ring(7),
        schema(**{"$ref": "#"}),
        schema(allOf=[{"$ref": "#"}]),
        schema(anyOf=[{"not": {"$ref": "#"}}]),
        schema(**{"if": {"$ref": "#"}}),
    ],
)
def test_a_schema_that_is_itself_without_going_deeper_is_refused(loop: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="without going deeper"):
        Schema.of(loop)


@pytest.mark.req("C1")
def test_a_schema_of_trees_is_taken() -> None:
    found = Schema.of(TREE)
    assert found.is_valid({"x": nested(60, "leaf")})
    assert not found.is_valid({"x": nested(60, 1)})


@pytest.mark.req("C1")
def test_unions_that_hold_each_other_are_taken() -> None:
    union = {"anyOf": [{"$ref": f"#/$defs/t{at}"} for at in range(8)]}
    kinds = {
        f"t{at}": {"properties": {"kind": {"const": at}, "inner": {"items": union}, "next": union}}
        for at in range(8)
    }
    assert Schema.of(schema(properties={"x": union}, **{"$defs": kinds})).is_valid({})


@pytest.mark.req("C1")
def test_a_recursive_schema_that_also_doubles_is_refused() -> None:
    bomb = doubling(9, refer=POINTERS["pointer"])
    bomb["$defs"]["d-9"] = {"items": {"$ref": "#/$defs/d-0"}}
    with pytest.raises(ValueError, match="expands to more than 100 checks"):
        Schema.of(bomb)


@pytest.mark.req("C1", "X2")
def test_what_is_wrong_with_deep_recursive_arguments_is_said_without_trying_every_branch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Schema.of(TREE)
    assert [pointer for pointer, _ in found.problems({"x": 1})] == ["/x"], "positive control"
    assert found.problems({"x": nested(40, 1)}) == [
        ("", "they do not fit, and are nested too deep to say where")
    ]
    # Without the guard the explanation itself doubles with every level.
    monkeypatch.setattr("toolgate.spec.schema.MAX_EXPLAINED", 10**30)
    small, large = (
        len(json.dumps(explained(found, {"x": nested(levels, 1)}))) for levels in (2, 6)
    )
    assert large > 10 * small
    assert MAX_EXPLAINED < 10**6


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "remote",
    [
        property_x(**{"$ref": "https://example.com/a"}),
        property_x(**{"$ref": "other.json#/a"}),
        property_x(**{"$ref": "file:///etc/passwd"}),
        schema(dependencies={"enum": {"$ref": "http://127.0.0.1:9/"}}),
        schema(properties={"enum": {"$ref": "http://127.0.0.1:9/"}}),
        schema(**{"x-more": {"$ref": "http://127.0.0.1:9/"}}),
    ],
)
def test_a_reference_out_of_the_document_is_refused(remote: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="refers outside itself"):
        Schema.of(remote)


@pytest.mark.req("C1")
def test_a_reference_that_is_only_data_is_taken() -> None:
    for data in ({"const": {"$ref": "http://x"}}, {"default": {"$ref": "http://x"}}):
        assert Schema.of(property_x(**data)).is_valid({})
    assert Schema.of(schema(properties={"$ref": {"type": "string"}})).is_valid({"$ref": "a"})


@pytest.mark.req("C1")
def test_a_remote_reference_is_never_fetched_and_would_be_without_the_guards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(0)
        remote = property_x(**{"$ref": f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"})
        with pytest.raises(ValueError, match="refers outside itself"):
            Schema.of(remote)
        # Were the walk to miss it, compiling is offline all the same.
        unguarded(monkeypatch)
        with pytest.raises(ValueError, match="Retrieval is disabled"):
            Schema.of(remote)
        with pytest.raises(BlockingIOError):
            listener.accept()

        # The validator alone, without either guard, asks whoever the schema names.
        listener.settimeout(20)
        asked: list[bytes] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(1024))
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.Draft202012Validator(remote)
        thread.join()
        assert asked[0].startswith(b"GET /schema.json")


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        (property_x(**{"$ref": "#/$defs/none"}), "where no schema is"),
        (property_x(**{"$ref": "#none"}), "where no schema is"),
        (bombs.hidden(3), "where no schema is"),
        (property_x(**{"$dynamicRef": "#a"}), r"uses \$dynamicRef"),
        (property_x(**{"$recursiveRef": "#"}), r"uses \$recursiveRef"),
        (property_x(**{"$id": "http://x/"}), r"changes its base address with \$id"),
        (
            schema(
                properties={"x": {"id": "http://x/", "type": "string"}},
                **{"$schema": "http://json-schema.org/draft-04/schema#"},
            ),
            "changes its base address",
        ),
        (schema(**{"$schema": "http://example.com/mine"}), r"names a \$schema that is not known"),
        (property_x(type="strin"), "is no valid JSON Schema: /properties/x/type"),
        (property_x(pattern="("), "patterns run in linear time"),
        (property_x(pattern="(?=a)b"), "no look-around"),
        (property_x(pattern=r"(a)\1"), "no back-references"),
        (property_x(enum=list(range(20_001))), "more than 20,000 values"),
        (bombs.nested(70, "not"), "nested deeper than 64 levels"),
        (
            schema(properties={f"p{at}": {"pattern": "a"} for at in range(201)}),
            "has 201 patterns; at most 200",
        ),
    ],
)
def test_a_schema_that_is_refused_says_why_and_where(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Schema.of(document)


@pytest.mark.req("C1")
@pytest.mark.parametrize("odd", [7, "text", None, [], 1.5])
def test_what_is_no_object_is_no_schema(odd: object) -> None:
    with pytest.raises(ValueError, match="a schema is an object"):
        Schema.of(odd)


@pytest.mark.req("C1")
def test_patterns_run_in_linear_time_and_what_cannot_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Fifty thousand characters at a pattern that is exponential where it backtracks.
    assert not Schema.of(property_x(pattern="^(a+)+$")).is_valid({"x": "a" * 50_000 + "!"})
    backtracking = property_x(pattern=r"^(?=(a+)+$)a")
    with pytest.raises(ValueError, match="no look-around"):
        Schema.of(backtracking)
    # Without the guard an engine that backtracks takes it.
    monkeypatch.setattr("toolgate.spec.schema._PATTERNS", jsonschema_rs.FancyRegexOptions())
    assert Schema.of(backtracking).is_valid({"x": "aaa"})


POSITIONS = st.sampled_from(["allOf", "anyOf", "oneOf"])
GRAPHS = st.lists(
    st.tuples(POSITIONS, st.lists(st.integers(0, 9), max_size=4), st.booleans()),
    min_size=1,
    max_size=10,
)


@pytest.mark.req("C1")
@given(graph=GRAPHS)
def test_whatever_is_taken_is_bounded(graph: list[tuple[str, list[int], bool]]) -> None:
    """Any graph of definitions: refused, or within what the bound says for one value."""
    defs: dict[str, Any] = {}
    for at, (keyword, targets, deeper) in enumerate(graph):
        references = [{"$ref": f"#/$defs/d{target % len(graph)}"} for target in targets]
        inner: dict[str, Any] = {keyword: references} if references else {"type": "array"}
        defs[f"d{at}"] = {"items": inner} if deeper else inner
    document = property_x(**{"$ref": "#/$defs/d0"}) | {"$defs": defs}
    try:
        found = Schema.of(document)
    except ValueError:
        return
    assert found.is_valid({"x": nested(4, [])}) in {True, False}
    if not bounds.check(document, found.raw).recursive:
        seen = evaluated(found, {"x": nested(10, [])})
        assert seen <= 4 * bounds.MAX_EXPANSION


@pytest.mark.req("C1")
@given(document=SCHEMAS)
def test_a_plain_schema_is_taken_and_read_back_as_it_was(document: dict[str, Any]) -> None:
    found = Schema.of(document)
    assert found.value() == document
    assert found == Schema.of(found.value())


MANY = 90_000


@pytest.mark.req("X2")
def test_a_large_value_that_does_not_fit_is_told_by_its_first_problem() -> None:
    """The validator would make ninety thousand problems to tell ten."""
    schema = Schema.of({"type": "array", "items": {"type": "string"}})
    assert schema.problems([1] * MANY) == [("/0", '1 is not of type "string"')]
    assert len(schema.problems([1] * 20)) == 10


@pytest.mark.req("X2")
@pytest.mark.parametrize(
    ("items", "value"),
    [({"anyOf": [{"const": n} for n in range(4_000)]}, 3_999), ({"enum": list(range(18_000))}, 1)],
    ids=["anyOf", "enum"],
)
def test_a_large_value_is_not_held_against_a_large_schema(
    items: dict[str, Any], value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema.of({"type": "array", "items": items})
    assert schema.is_valid([value] * 10)
    assert not schema.is_valid([value] * MANY)
    ((_, said),) = schema.problems([value] * MANY)
    assert "too large" in said
    # The guard-off control: it would be held against it, however long that takes.
    monkeypatch.setattr("toolgate.spec.schema.MAX_WORK", 10**9)
    assert schema.is_valid([value] * 1_000)


def test_what_does_not_fit_is_told_with_what_would() -> None:
    kinds = ["normal", "uniform", "exponential", "gamma", "beta"]
    some = {"kind": {"enum": kinds}, "mean": {"type": "number"}}
    closed = Schema.of({"type": "object", "properties": some, "additionalProperties": False})
    told = dict(closed.problems({"kind": "normel", "rate": 3}))
    assert all(f'"{kind}"' in told["/kind"] for kind in kinds)
    assert "'rate' was unexpected" in told[""]
    assert told[""].endswith("known: 'kind', 'mean'")
    # Of very many, the nearest.
    many = Schema.of({"enum": [*kinds, *(f"kind_number_{number}" for number in range(200))]})
    assert many.problems("normel")[0][1].endswith("did you mean 'normal'?")
