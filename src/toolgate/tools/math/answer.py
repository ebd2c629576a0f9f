"""A value as an answer: a number for programs, and a text that has all its digits."""

import decimal
from fractions import Fraction
from typing import Any

from toolgate.tools.math.arithmetic import Value

# Whole numbers up to here are the same in every program that reads JSON.
_SAFE = 2**53
_DIGITS = 30
_PLACES = 60


def answer(value: Value) -> dict[str, Any]:
    """`result` is a number or a truth. Where `exact` says so, the value is known exactly: it is the
    fraction, or the text where there is none.
    """
    if isinstance(value, bool):
        return {"result": value, "text": str(value).lower(), "kind": "boolean", "exact": True}
    if isinstance(value, int):
        return {"result": _number(value), "text": str(value), "kind": "integer", "exact": True}
    if isinstance(value, float):
        # There is no other zero for a reader.
        found = value or 0.0
        return {"result": found, "text": repr(found), "kind": "real", "exact": False}
    text, is_exact = _decimal(value)
    found = {"result": _number(value), "text": text, "kind": "rational", "exact": True}
    fraction = f"{value.numerator}/{value.denominator}"
    # A long one says nothing that the decimals do not.
    return found if is_exact and len(fraction) > _DIGITS else {**found, "fraction": fraction}


def _number(value: int | Fraction) -> float | None:
    if isinstance(value, int) and abs(value) <= _SAFE:
        return value
    try:
        # Nothing but zero is zero.
        return float(value) or None
    except OverflowError:
        return None


def _decimal(value: Fraction) -> tuple[str, bool]:
    """In decimal notation, and whether that is all of it."""
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    is_exact = rest == 1 and places <= _PLACES
    digits = len(str(abs(value.numerator))) + places if is_exact else _DIGITS
    context = decimal.Context(prec=digits)
    found = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))
    return format(found, "f") if is_exact else str(found), is_exact
