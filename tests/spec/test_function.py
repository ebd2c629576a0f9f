"""`@tool`: the signature is the schema, the docstring the description."""

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from toolgate import tool
from toolgate.call import Call
from toolgate.errors import InvalidArguments, InvalidSpecs
from toolgate.spec.effect import Effect
from toolgate.spec.function import Binding


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    street: str
    city: str = "Bern"


class Line(BaseModel):
    title: str = Field(description="What is sold.")
    price: float = Field(gt=0)


class Order(BaseModel):
    lines: list[Line]
    to: Address


class Opaque:
    """Nothing that JSON could carry."""


def schema(function: Any, **fields: Any) -> dict[str, Any]:
    return Binding(function, **fields).spec.input_schema.value()


def refusal(function: Any) -> str:
    with pytest.raises(InvalidSpecs) as refused:
        Binding(function)
    (problem,) = refused.value.problems
    return str(problem)


@pytest.mark.req("C2", "P1")
def test_a_function_becomes_a_spec() -> None:
    @tool(effect="pure", tags=["geo"], timeout=5)
    async def weather(
        city: Annotated[str, "Which city."],
        days: Annotated[int, Field(ge=1, le=7, description="How many.")] = 3,
        unit: Literal["C", "F"] = "C",
    ) -> dict[str, float]:
        """What the weather will be."""
        return {city: float(days)}

    binding = Binding(weather)
    assert binding.is_async
    assert binding.injected is None
    spec = binding.spec
    assert (spec.name, spec.description) == ("weather", "What the weather will be.")
    assert (spec.effect, spec.tags, spec.timeout) == (Effect.PURE, ("geo",), 5)
    assert spec.origin.kind == "python"
    assert spec.origin.where.endswith("weather")
    assert spec.input_schema.value() == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "city": {"description": "Which city.", "type": "string"},
                "days": {
                    "description": "How many.",
                    "maximum": 7,
                    "minimum": 1,
                    "type": "integer",
                    "default": 3,
                },
                "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
            },
            "required": ["city"],
            "type": "object",
        }
    )
    assert spec.output_schema is not None
    assert spec.output_schema.value() == snapshot(
        {"additionalProperties": {"type": "number"}, "type": "object"}
    )


@pytest.mark.req("C2")
def test_the_decorator_works_with_and_without_parentheses_and_leaves_the_function_alone() -> None:
    def plain(a: int) -> int:
        return a

    bare, called = tool(plain), tool(effect="pure")(plain)
    assert bare is plain
    assert called is plain
    assert bare(3) == 3
    assert Binding(plain).spec.effect is Effect.PURE


@pytest.mark.req("C1")
def test_a_function_that_does_not_say_its_effect_is_irreversible() -> None:
    @tool
    def act() -> None: ...

    assert Binding(act).spec.effect is Effect.IRREVERSIBLE


@pytest.mark.req("C2")
def test_fields_that_are_given_when_it_is_added_win() -> None:
    @tool(name="one", category="a")
    def act() -> None: ...

    spec = Binding(act, name="two").spec
    assert (spec.name, spec.category) == ("two", "a")


@pytest.mark.req("C2")
def test_enums_dataclasses_and_models_become_schemas_and_arrive_as_themselves() -> None:
    def buy(order: Order, colour: Colour, note: Optional[str] = None) -> None:  # noqa: UP045
        """Buy something."""

    binding = Binding(buy)
    assert binding.spec.input_schema.value() == snapshot(
        {
            "$defs": {
                "Address": {
                    "properties": {
                        "street": {"type": "string"},
                        "city": {"default": "Bern", "type": "string"},
                    },
                    "required": ["street"],
                    "type": "object",
                },
                "Colour": {"enum": ["red", "blue"], "type": "string"},
                "Line": {
                    "properties": {
                        "title": {"description": "What is sold.", "type": "string"},
                        "price": {"exclusiveMinimum": 0, "type": "number"},
                    },
                    "required": ["title", "price"],
                    "type": "object",
                },
                "Order": {
                    "properties": {
                        "lines": {"items": {"$ref": "#/$defs/Line"}, "type": "array"},
                        "to": {"$ref": "#/$defs/Address"},
                    },
                    "required": ["lines", "to"],
                    "type": "object",
                },
            },
            "additionalProperties": False,
            "properties": {
                "order": {"$ref": "#/$defs/Order"},
                "colour": {"$ref": "#/$defs/Colour"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["order", "colour"],
            "type": "object",
        }
    )
    given = {
        "order": {"lines": [{"title": "Pen", "price": 2}], "to": {"street": "A 1"}},
        "colour": "red",
    }
    assert binding.spec.input_schema.is_valid(given)
    assert binding.arguments(given) == {
        "order": Order(lines=[Line(title="Pen", price=2)], to=Address("A 1")),
        "colour": Colour.RED,
    }


@pytest.mark.req("C2", "X5")
def test_arguments_that_do_not_fit_are_refused_with_pointers() -> None:
    def buy(lines: list[Line]) -> None: ...

    with pytest.raises(InvalidArguments) as refused:
        Binding(buy).arguments({"lines": [{"title": "Pen", "price": -1}]})
    assert refused.value.details["problems"][0]["pointer"] == "/lines/0/price"


@pytest.mark.req("C2")
def test_extra_arguments_are_refused_unless_the_function_takes_them() -> None:
    def few(a: int) -> None: ...
    def many(a: int, **others: int) -> None: ...

    assert not Binding(few).spec.input_schema.is_valid({"a": 1, "b": 2})
    binding = Binding(many)
    assert binding.spec.input_schema.is_valid({"a": 1, "b": 2})
    assert binding.arguments({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def google(city: str, days: int = 1) -> None:
    """Tell the weather.

    More about it.

    Args:
        city: Which city.
        days (int): How many days.

    Returns:
        Nothing at all.
    """


def sphinx(city: str, days: int = 1) -> None:
    """Tell the weather.

    More about it.

    :param city: Which city.
    :param int days: How many days.
    """


@pytest.mark.req("C2")
@pytest.mark.parametrize("function", [google, sphinx])
def test_a_docstring_describes_the_tool_and_its_arguments(function: Any) -> None:
    spec = Binding(function).spec
    assert spec.description == "Tell the weather.\n\nMore about it."
    properties = spec.input_schema.value()["properties"]
    assert [one["description"] for one in properties.values()] == ["Which city.", "How many days."]


@pytest.mark.req("C2")
def test_an_annotation_says_more_than_a_docstring() -> None:
    def ask(city: Annotated[str, "By annotation."], country: str) -> None:
        """Ask.

        Args:
            city: By docstring.
            country: By docstring.
        """

    properties = schema(ask)["properties"]
    assert properties["city"]["description"] == "By annotation."
    assert properties["country"]["description"] == "By docstring."


@pytest.mark.req("C2")
def test_a_function_without_types_or_docstring_is_a_tool_of_anything() -> None:
    def act(a, b=1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        raise NotImplementedError

    assert schema(act) == snapshot(
        {
            "additionalProperties": False,
            "properties": {"a": {}, "b": {"default": 1}},
            "required": ["a"],
            "type": "object",
        }
    )


@pytest.mark.req("C2", "P1")
def test_a_parameter_of_the_calls_type_is_not_an_argument() -> None:
    async def act(call: Call, a: int) -> None: ...

    binding = Binding(act)
    assert binding.injected == "call"
    assert list(schema(act)["properties"]) == ["a"]
    assert not binding.spec.input_schema.is_valid({"a": 1, "call": {}})


@pytest.mark.req("C2", "P1")
def test_a_method_is_a_tool_without_its_self() -> None:
    class Shop:
        def buy(self, item: str) -> str:
            """Buy it."""
            return item

        @staticmethod
        async def sell(item: str) -> str:
            return item

        @classmethod
        def count(cls, item: str) -> int:
            return len(item)

    shop = Shop()
    for function in (shop.buy, shop.sell, Shop.count):
        assert list(schema(function)["properties"]) == ["item"]
    assert Binding(shop.sell).is_async
    assert not Binding(shop.buy).is_async


@pytest.mark.req("C2")
def test_positional_parameters_are_refused() -> None:
    def only(a: int, /) -> None: ...
    def rest(*a: int) -> None: ...

    assert "only.a is passed by position. Name the parameter, without /" in refusal(only)
    assert "rest.a is passed by position. Name the parameter and take a list" in refusal(rest)
    for function in (only, rest):
        assert refusal(function).endswith("a model passes arguments by name.")


@pytest.mark.req("C1", "C2")
def test_a_schema_in_the_decorator_that_cannot_fit_the_function_is_refused() -> None:
    def pay(amount: int) -> None: ...

    fields: list[dict[str, Any]] = [{}, {"amount": {}, "to": {}}]
    for properties in fields:
        given: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        assert "pay.input_schema cannot be used" in refusal(tool(input_schema=given)(pay))


@pytest.mark.req("C2")
def test_types_that_cannot_be_resolved_are_refused_in_words() -> None:
    def unknown(a: Any) -> None: ...

    unknown.__annotations__["a"] = "Missing"
    said = refusal(unknown)
    assert "has a type that cannot be resolved" in said
    assert "Traceback" not in said


@pytest.mark.req("C2")
@pytest.mark.parametrize("hint", [Opaque, list[Opaque], "int |"])
def test_types_that_json_cannot_carry_are_refused(hint: Any) -> None:
    def act(a: Any) -> None: ...

    act.__annotations__["a"] = hint
    assert "Use types that JSON can carry" in refusal(act)


@pytest.mark.req("C2")
def test_a_return_type_that_json_cannot_carry_only_means_no_output_schema() -> None:
    def act() -> Opaque:
        return Opaque()

    assert Binding(act).spec.output_schema is None


@pytest.mark.req("C2")
def test_defaults_are_in_the_schema_and_what_has_no_json_is_left_out() -> None:
    marker = object()

    def act(a: Colour = Colour.RED, b: Any = marker, c: int | None = None) -> None: ...

    properties = schema(act)["properties"]
    assert properties["a"]["default"] == "red"
    assert "default" not in properties["b"]
    assert properties["c"]["default"] is None
    assert Binding(act).arguments({}) == {}


@pytest.mark.req("C1")
def test_contradictions_are_refused_in_a_decorator_too() -> None:
    @tool(effect="pure", destructive=True)
    def act() -> None: ...

    assert "effect is pure, but the tool is destructive" in refusal(act)


@pytest.mark.req("C1")
def test_a_property_called_title_keeps_its_place() -> None:
    def act(title: str, line: Line) -> None: ...

    found = schema(act)
    assert found["properties"]["title"] == {"type": "string"}
    assert set(found["$defs"]["Line"]["properties"]) == {"title", "price"}
