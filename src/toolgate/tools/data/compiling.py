"""Functions from JMESPath: the library reads the query, and what it means is made once.

A query works on a budget: every element that it looks at, and every character that it writes, is
paid for before. It can reach nothing but the value that it is given.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter

from toolgate.errors import ToolError
from toolgate.tools.data.budget import Budget
from toolgate.tools.data.given import count

Step = Callable[[Any], Any]
_COMPARING = TreeInterpreter.COMPARATOR_FUNC
# The kinds of values; of what is in them nothing is known.
_LIST: Any = list
_OBJECT: Any = dict
_PARTS: Any = (list, dict)
_SIZED: Any = (str, list, dict)
FUNCTIONS = sorted(Functions.FUNCTION_TABLE)
_SIMPLE: dict[str, Callable[[Any, str], bool]] = {
    "contains": lambda one, two: two in one,
    "starts_with": lambda one, two: one.startswith(two),
    "ends_with": lambda one, two: one.endswith(two),
}


class Compiler:
    """One query's. `copies` tells whether a result can hold the same part more than once."""

    def __init__(self, budget: Budget) -> None:
        self.copies = False
        self._budget = budget
        self._functions = Functions()

    def step(self, node: dict[str, Any]) -> Step:
        """What a node of the syntax tree does with a value."""
        return getattr(self, "_" + node["type"])(node)

    def _steps(self, node: dict[str, Any]) -> list[Step]:
        return [self.step(child) for child in node["children"]]

    def _chain(self, node: dict[str, Any]) -> Step:
        steps = self._steps(node)
        if len(steps) == 2:
            first, second = steps
            return lambda value: second(first(value))

        def run(value: Any) -> Any:
            for step in steps:
                value = step(value)
            return value

        return run

    _subexpression = _index_expression = _pipe = _chain

    def _field(self, node: dict[str, Any]) -> Step:
        name = node["value"]
        return lambda value: value.get(name) if isinstance(value, _OBJECT) else None

    def _current(self, _node: dict[str, Any]) -> Step:
        return lambda value: value

    _identity = _current

    def _literal(self, node: dict[str, Any]) -> Step:
        found = node["value"]
        return lambda _value: found

    def _index(self, node: dict[str, Any]) -> Step:
        at = node["value"]

        def run(value: Any) -> Any:
            if not isinstance(value, _LIST):
                return None
            return value[at] if -len(value) <= at < len(value) else None

        return run

    def _slice(self, node: dict[str, Any]) -> Step:
        part = slice(*node["children"])

        def run(value: Any) -> Any:
            if not isinstance(value, _LIST):
                return None
            self._budget.pay(len(value))
            return value[part]

        return run

    def _projection(self, node: dict[str, Any]) -> Step:
        base, each = self._steps(node)
        budget = self._budget

        def run(value: Any) -> Any:
            elements = base(value)
            if not isinstance(elements, _LIST):
                return None
            budget.pay(len(elements))
            return [found for one in elements if (found := each(one)) is not None]

        return run

    def _value_projection(self, node: dict[str, Any]) -> Step:
        base, each = self._steps(node)
        budget = self._budget

        def run(value: Any) -> Any:
            fields = base(value)
            if not isinstance(fields, _OBJECT):
                return None
            budget.pay(len(fields))
            return [found for one in fields.values() if (found := each(one)) is not None]

        return run

    def _filter_projection(self, node: dict[str, Any]) -> Step:
        base, each, keeps = self._steps(node)
        budget = self._budget

        def run(value: Any) -> Any:
            elements = base(value)
            if not isinstance(elements, _LIST):
                return None
            budget.pay(2 * len(elements))
            kept = [one for one in elements if (truth := keeps(one)) is True or is_true(truth)]
            return [found for one in kept if (found := each(one)) is not None]

        return run

    def _flatten(self, node: dict[str, Any]) -> Step:
        (base,) = self._steps(node)

        def run(value: Any) -> Any:
            elements = base(value)
            if not isinstance(elements, _LIST):
                return None
            merged: list[Any] = []
            for one in elements:
                if isinstance(one, _LIST):
                    self._budget.pay(len(one) + 1)
                    merged += one
                else:
                    merged.append(one)
            self._budget.pay(len(elements))
            return merged

        return run

    def _multi_select_list(self, node: dict[str, Any]) -> Step:
        self.copies = True
        steps = self._steps(node)
        budget, price = self._budget, len(steps)

        def run(value: Any) -> Any:
            if value is None:
                return None
            budget.pay(price)
            return [step(value) for step in steps]

        return run

    def _multi_select_dict(self, node: dict[str, Any]) -> Step:
        self.copies = True
        fields = [(child["value"], self.step(child["children"][0])) for child in node["children"]]
        budget, price = self._budget, len(fields)

        def run(value: Any) -> Any:
            if value is None:
                return None
            budget.pay(price)
            return {name: step(value) for name, step in fields}

        return run

    def _or_expression(self, node: dict[str, Any]) -> Step:
        first, second = self._steps(node)

        def run(value: Any) -> Any:
            found = first(value)
            return found if is_true(found) else second(value)

        return run

    def _and_expression(self, node: dict[str, Any]) -> Step:
        first, second = self._steps(node)

        def run(value: Any) -> Any:
            found = first(value)
            return second(value) if is_true(found) else found

        return run

    def _not_expression(self, node: dict[str, Any]) -> Step:
        (step,) = self._steps(node)
        return lambda value: not is_true(step(value))

    def _comparator(self, node: dict[str, Any]) -> Step:
        first, second = self._steps(node)
        name, right = node["value"], node["children"][1]
        if right["type"] == "literal" and not isinstance(right["value"], _PARTS):
            return _to_literal(name, first, right["value"])
        compare = _COMPARING[name]
        if name in ("eq", "ne"):

            def equal(value: Any) -> Any:
                one, two = first(value), second(value)
                if isinstance(one, _PARTS) and isinstance(two, _PARTS):
                    self._weigh(one)
                    self._weigh(two)
                return compare(one, two)

            return equal

        def run(value: Any) -> Any:
            one, two = first(value), second(value)
            return compare(one, two) if _has_order(one, two) else None

        return run

    def _expref(self, node: dict[str, Any]) -> Step:
        reference = _Reference(self.step(node["children"][0]), self._budget)
        return lambda _value: reference

    def _function_expression(self, node: dict[str, Any]) -> Step:
        self.copies = True
        name, steps = node["value"], self._steps(node)
        if name not in FUNCTIONS:
            near = get_close_matches(name, FUNCTIONS, n=1, cutoff=0.7)
            meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(FUNCTIONS)}."
            raise ToolError(f"JMESPath has no function {name[:40]}(). {meant}")
        call = self._functions.call_function
        if name in _SIMPLE and len(steps) == 2:
            return self._simple(name, *steps)

        def run(value: Any) -> Any:
            given = [step(value) for step in steps]
            self._pay_for(name, given)
            found = call(name, given)
            if isinstance(found, _SIZED):
                self._budget.pay(len(found))
            return found

        return run

    def _simple(self, name: str, first: Step, second: Step) -> Step:
        """Texts in texts: most filters are made of them, and they need little checking."""
        decide = _SIMPLE[name]
        kinds: Any = (str, list) if name == "contains" else str
        call = self._functions.call_function

        def run(value: Any) -> Any:
            one, two = first(value), second(value)
            if isinstance(two, str) and isinstance(one, kinds):
                self._budget.pay(1 + len(one) // 16)
                return decide(one, two)
            self._pay_for(name, [one, two])
            return call(name, [one, two])

        return run

    def _pay_for(self, name: str, given: list[Any]) -> None:
        """What a function looks through; some look at parts of parts, and some write them."""
        for one in given:
            if isinstance(one, _SIZED):
                self._budget.pay(len(one))
                if name in ("to_string", "contains", "join"):
                    self._weigh(one)
        if name == "join" and len(given) == 2 and isinstance(given[1], _LIST):
            between = len(given[0]) if isinstance(given[0], str) else 0
            self._budget.pay(between * len(given[1]))

    def _weigh(self, value: Any) -> None:
        self._budget.pay(count(value, self._budget.left))


class _Reference:
    """`&expression`, as the library's functions want it."""

    def __init__(self, step: Step, budget: Budget) -> None:
        self.expression = None
        self.interpreter = self
        self._step = step
        self._budget = budget

    def visit(self, _node: object, value: Any) -> Any:
        self._budget.pay(1)
        return self._step(value)


# Functions tell a reference by the name of its class.
_Reference.__name__ = "_Expression"


def is_true(value: Any) -> bool:
    """As JMESPath has it: 0 is true."""
    if value is True:
        return True
    if value is None or value is False:
        return False
    return not isinstance(value, _SIZED) or len(value) > 0


def _to_literal(name: str, first: Step, literal: Any) -> Step:
    """A comparison with a text or a number that is written in the query, as most are."""
    compare = _COMPARING[name]
    if name in ("eq", "ne"):
        if isinstance(literal, str):
            wanted = name == "eq"
            return lambda value: (first(value) == literal) is wanted
        return lambda value: compare(first(value), literal)
    kinds: tuple[type, ...] = (str,) if isinstance(literal, str) else (int, float)
    if not _has_order(literal, literal):
        # Still, what is compared has to be right.
        kinds = ()

    def run(value: Any) -> Any:
        found = first(value)
        return compare(found, literal) if type(found) in kinds else None

    return run


def _has_order(one: Any, two: Any) -> bool:
    if isinstance(one, str) or isinstance(two, str):
        return isinstance(one, str) and isinstance(two, str)
    return _is_number(one) and _is_number(two)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
