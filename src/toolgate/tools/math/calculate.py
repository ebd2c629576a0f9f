"""`calculate`: the value of an expression, exactly where that is possible."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.math.answer import answer
from toolgate.tools.math.arithmetic import Value
from toolgate.tools.math.evaluate import evaluate
from toolgate.tools.math.expression import parse
from toolgate.tools.math.names import check_names
from toolgate.tools.means import Means


async def calculate(
    _means: Means, _call: Call, *, expression: str, variables: dict[str, float] | None = None
) -> dict[str, Any]:
    """Evaluate a math expression.

    Args:
        expression: such as (3 + 4)^2 / 7
        variables: values of the names in it
    """
    given = variables or {}
    check_names(given)
    return answer(evaluate(parse(expression), {name: _exact(given[name]) for name in given}))


def _exact(number: float) -> Value:
    """As it is written: 0.1 is a tenth."""
    if not isinstance(number, float):
        return number
    if not math.isfinite(number):
        raise ToolError("A variable is not a finite number.")
    found = Fraction(Decimal(repr(number)))
    return found.numerator if found.denominator == 1 else found
