"""A mistyped keyword is told; one that is only unknown is not."""

from typing import Any

import pytest

from tests.spec.bombs import property_x, schema
from tests.spec.specs import problems, sentences
from toolgate.spec.schema import Schema


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"tpye": "object"}, "unknown keyword 'tpye' at /; did you mean 'type'"),
        (schema(propertys={}), "'propertys' at /; did you mean 'properties'"),
        (schema(requird=["a"]), "'requird' at /; did you mean 'required'"),
        (schema(additionalproperties=False), "did you mean 'additionalProperties'"),
        (property_x(Type="string"), "'Type' at /properties/x; did you mean 'type'"),
        (property_x(minlength=3), "'minlength' at /properties/x; did you mean 'minLength'"),
        (schema(properties={"a/b": {"items": {"emun": [1]}}}), "at /properties/a~1b/items"),
        (schema(anyOf=[{}, {"descripton": "a"}]), "at /anyOf/1; did you mean 'description'"),
        (schema(**{"$defs": {"d": {"not": {"itmes": {}}}}}), "at /\\$defs/d/not"),
    ],
)
def test_a_keyword_that_is_nearly_one_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Schema.of(document)


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "document",
    [
        schema(**{"x-type": 1, "x-requird": [], "x-order": {"tpye": 1}}),
        schema(
            units="metres",
            order=3,
            comment="a",
            note="b",
            form="c",
            optional=True,
            widget={"tpye": "slider"},
        ),
        schema(properties={"tpye": {"type": "string"}, "requird": True}),
        schema(**{"$defs": {"itmes": {}}}, patternProperties={"tpye": {}}),
        property_x(default={"tpye": 1}, enum=[{"requird": 1}], examples=[{"itmes": 1}]),
        property_x(dependentRequired={"tpye": ["requird"]}, dependencies={"itmes": ["tpye"]}),
        property_x(nullable=True, example=1, discriminator={"propertyName": "a"}),
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "$defs": 3},
    ],
)
def test_what_is_only_unknown_or_a_name_or_data_is_taken(document: dict[str, Any]) -> None:
    assert Schema.of(document).value() == document


@pytest.mark.req("C1")
def test_an_argument_that_is_required_and_forbidden_is_refused() -> None:
    closed: dict[str, Any] = {"required": ["b"], "additionalProperties": False}
    with pytest.raises(ValueError, match="requires 'b' at /, which properties lacks"):
        Schema.of(schema(properties={"a": {}}, **closed))
    with pytest.raises(ValueError, match="requires 'b' at /properties/x"):
        Schema.of(property_x(type="object", **closed))
    for fine in (
        schema(required=["b"]),
        schema(required=["b"], additionalProperties={"type": "string"}),
        schema(properties={"b": {}}, **closed),
        schema(patternProperties={"^b": {}}, **closed),
    ):
        assert Schema.of(fine).is_valid({"b": "text"})


@pytest.mark.req("C1", "C2")
def test_the_message_says_where_and_what_in_every_layout() -> None:
    (said,) = sentences(input_schema={"type": "object", "propertys": {}})
    assert "pay.input_schema has the unknown keyword 'propertys' at /; did you mean" in said
    (problem,) = problems("- {name: a, parameters: {city: {type: string, requird: false}}}")
    assert problem.field == "parameters"
    assert "did you mean 'required'?" in problem.message
