"""What a call costs: a metric, and an amount that is said, or found in its arguments or result.

Amounts are whole millionths inside: a budget must not drift by what floats leave over.
"""

import re
from decimal import Decimal, InvalidOperation

import msgspec

# What every call costs one of.
CALLS = "tool_calls"
UNIT = 1_000_000
# Far below what a database's largest whole number holds, so that sums fit too.
MOST = 10**15
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_EXACT = Decimal(UNIT)


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a call costs of one metric: a number, `$args.NAME` or `$result.NAME`."""

    metric: str
    amount: int | float | str = 1


def is_metric(name: object) -> bool:
    """Whether a metric may be called this."""
    return isinstance(name, str) and _METRIC.match(name) is not None


def millionths(value: object, most: int = MOST) -> int:
    """The amount in whole millionths, or `ValueError` that says what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError("is not a number")
    found = value * UNIT if isinstance(value, int) else _rounded(value)
    if found < 0:
        raise ValueError("is less than nothing")
    if found > most:
        raise ValueError(f"is more than {most // UNIT:,}")
    return found


def plain(amount: int) -> int | float:
    """An amount in millionths as a person writes it."""
    whole, rest = divmod(amount, UNIT)
    return whole if rest == 0 else amount / UNIT


def _rounded(value: float | Decimal) -> int:
    try:
        # By its shortest text: 0.1 is a tenth, not what a float makes of it.
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        # Up, so that a thousand parts of a millionth do not pass for nothing.
        return int((exact * _EXACT).to_integral_value(rounding="ROUND_CEILING"))
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError("is not a number") from None
