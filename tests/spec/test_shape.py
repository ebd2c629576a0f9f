"""What can be a tool, and what is told about the rest."""

import functools
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from toolgate import tool
from toolgate.errors import InvalidSpecs
from toolgate.spec.effect import Effect
from toolgate.spec.function import Binding


class Shop:
    def buy(self, item: str) -> str:
        """Buy it."""
        return item


class Greets:
    """An object."""

    async def __call__(self, name: str) -> str:
        """Greet somebody."""
        return name


def numbers(most: int) -> Iterator[int]:
    yield most


async def numbers_later(most: int) -> AsyncIterator[int]:
    yield most


@tool(name="pay", effect="idempotent", destructive=True)
def pay(amount: int, account: str, note: str = "") -> str:
    """Pay something."""
    return f"{amount} {account} {note}"


def refusal(given: Any, **fields: Any) -> str:
    with pytest.raises(InvalidSpecs) as refused:
        Binding(given, **fields)
    (problem,) = refused.value.problems
    return str(problem)


@pytest.mark.req("C2", "P1")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "python: 3 is not a function. Pass the function itself"),
        (None, "None is not a function"),
        ("pay", "'pay' is not a function"),
        (object(), "an object is not a function"),
        (math, "a module is not a function"),
        (Shop, "Shop is a class. Pass a function, or a method of an object."),
        (Shop.buy, "buy is a method without its object. Pass the method of an object"),
        (numbers, "numbers is a generator, which no call would run. Return a list, or write async"),
        (functools.partial(pay, 3), "a partial has no name of its own. Write add(…, name='NAME')."),
        (Greets(), "a Greets has no name of its own"),
        (min, "does not say which arguments it takes. Wrap it in a function of your own."),
        (math.sqrt, "sqrt.x is passed by position"),
    ],
)
def test_what_is_no_function_is_refused_in_words(given: Any, said: str) -> None:
    found = refusal(given)
    assert said in found
    assert " at 0x" not in found


@pytest.mark.req("C2")
def test_a_generator_is_refused_however_it_is_wrapped() -> None:
    class Counts:
        def __call__(self) -> Iterator[int]:
            yield 1

        def count(self) -> Iterator[int]:
            yield 1

    for given in (functools.partial(numbers, most=1), Counts(), Counts().count):
        assert "is a generator" in refusal(given, name="count")


@pytest.mark.req("C2")
def test_an_async_generator_streams_its_result() -> None:
    for given in (numbers_later, functools.partial(numbers_later, most=1)):
        binding = Binding(given, name="count")
        assert (binding.is_stream, binding.is_async) == (True, False)
        assert binding.spec.output_schema is None


def test_a_generator_that_a_decorator_turns_into_a_list_is_a_function() -> None:
    def listed(function: Callable[[int], Iterator[int]]) -> Callable[[int], list[int]]:
        @functools.wraps(function)
        def run(most: int) -> list[int]:
            return list(function(most))

        return run

    assert Binding(listed(numbers)).function(most=2) == [2]


@pytest.mark.req("C2", "P1")
def test_a_partial_is_a_tool_of_what_is_left_and_asks_for_the_same_care() -> None:
    binding = Binding(functools.partial(pay, account="mine"), name="pay_mine")
    spec = binding.spec
    assert (spec.name, spec.description) == ("pay_mine", "Pay something.")
    assert (spec.effect, spec.destructive) == (Effect.IDEMPOTENT, True)
    assert list(spec.input_schema.value()["properties"]) == ["amount", "note"]
    assert binding.function(**binding.arguments({"amount": 3})) == "3 mine "
    assert not spec.input_schema.is_valid({"amount": 3, "account": "theirs"})
    first = Binding(functools.partial(pay, 3), name="pay_three").spec
    assert first.input_schema.value()["required"] == ["account"]


@pytest.mark.req("C2")
def test_what_a_partial_has_settled_cannot_be_changed_by_a_caller() -> None:
    def anything(**fields: str) -> None: ...

    said = refusal(functools.partial(anything, secret="s"), name="anything")  # noqa: S106
    assert "fields would let a caller change what the partial has settled" in said


@pytest.mark.req("C2", "P1")
def test_an_object_that_can_be_called_is_a_tool() -> None:
    binding = Binding(Greets(), name="greet")
    assert binding.is_async
    assert binding.spec.description == "Greet somebody."
    assert list(binding.spec.input_schema.value()["properties"]) == ["name"]


@pytest.mark.req("C2", "P1")
def test_what_a_decorator_wraps_keeps_its_name_types_and_words() -> None:
    class Remembered:
        def __init__(self, function: Callable[..., Any]) -> None:
            functools.update_wrapper(self, function)
            self.function = function

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.function(*args, **kwargs)

    for given in (Remembered(pay), functools.lru_cache(pay)):
        spec = Binding(given).spec
        assert (spec.name, spec.description) == ("pay", "Pay something.")
        assert spec.input_schema.value()["properties"]["amount"] == {"type": "integer"}
        assert spec.destructive
