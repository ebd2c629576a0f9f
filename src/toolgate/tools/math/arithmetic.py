"""Exact arithmetic with whole numbers and fractions, and with floats where nothing exact is left.

Every operation is bounded before it begins: no number that comes of it has more than 10,000 bits.
"""

import math
from fractions import Fraction
from typing import TypeAlias

from toolgate.tools.math.tokens import wrong

Value: TypeAlias = bool | int | Fraction | float

BITS = 10_000
# A fraction that grows beyond this goes on as a float.
FRACTION_BITS = 2_000
_LARGEST_ROOT = 64


def settled(value: Value, at: int) -> Value:
    """A value that may be kept: not too large, a number, and whole where it can be."""
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise too_large(at)
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise wrong(at, "the result is too large for a number, or is none.")
        return value
    if value.denominator == 1:
        return settled(value.numerator, at)
    if _bits(value) > FRACTION_BITS:
        return as_float(value, at)
    return value


def as_float(value: Value, at: int) -> float:
    """The nearest float."""
    try:
        found = float(value)
    except OverflowError:
        raise wrong(at, "a number is too large to compute with here.") from None
    if found == 0.0 and value:
        raise wrong(at, "a number is too close to zero to compute with here.")
    return found


def add(one: Value, two: Value, at: int) -> Value:
    """`one + two`."""
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) + as_float(two, at), at)
    return settled(one + two, at)


def subtract(one: Value, two: Value, at: int) -> Value:
    """`one - two`."""
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) - as_float(two, at), at)
    return settled(one - two, at)


def multiply(one: Value, two: Value, at: int) -> Value:
    """`one * two`."""
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) * as_float(two, at), at)
    return settled(one * two, at)


def divide(one: Value, two: Value, at: int) -> Value:
    """`one / two`, exactly where both are."""
    _not_zero(two, at)
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) / as_float(two, at), at)
    return settled(Fraction(one) / two, at)


def floor_divide(one: Value, two: Value, at: int) -> Value:
    """`one // two`, downwards."""
    _not_zero(two, at)
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) // as_float(two, at), at)
    return settled(one // two, at)


def modulo(one: Value, two: Value, at: int) -> Value:
    """What is left of `one // two`, with the sign of `two`."""
    _not_zero(two, at)
    if isinstance(one, float) or isinstance(two, float):
        return settled(as_float(one, at) % as_float(two, at), at)
    return settled(one % two, at)


def power(base: Value, exponent: Value, at: int) -> Value:
    """`base ** exponent`: exact for whole exponents and for roots that come out even."""
    if not base and exponent < 0:
        raise wrong(at, "zero has no negative power.")
    if isinstance(base, float) or isinstance(exponent, float):
        return _float_power(as_float(base, at), as_float(exponent, at), at)
    if isinstance(exponent, int):
        return _whole_power(base, exponent, at)
    if exponent.denominator <= _LARGEST_ROOT and base >= 0:
        found = exact_root(base, exponent.denominator)
        if found is not None:
            return _whole_power(found, exponent.numerator, at)
    return _float_power(as_float(base, at), as_float(exponent, at), at)


def exact_root(value: int | Fraction, degree: int) -> int | Fraction | None:
    """The root of what is not negative, where it is a fraction; else nothing."""
    if isinstance(value, int):
        found = _whole_root(value, degree)
        return found if found**degree == value else None
    upper, lower = exact_root(value.numerator, degree), exact_root(value.denominator, degree)
    return None if upper is None or lower is None else Fraction(upper) / lower


def shift(value: Value, by: Value, at: int, *, left: bool) -> int:
    """`value << by` or `value >> by`."""
    number, count = whole(value, at), whole(by, at)
    if count < 0:
        raise wrong(at, "a shift is not negative; use the other operator.")
    if not left:
        return number >> count
    if number and number.bit_length() + count > BITS:
        raise too_large(at)
    return number << count if number else 0


def whole(value: Value, at: int) -> int:
    """A whole number; refused where it is none."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise wrong(at, "this is for whole numbers alone. Use floor, ceil or round first.")


def too_large(at: int) -> Exception:
    """How a result that would have too many digits is refused."""
    digits = int(BITS * math.log10(2))
    return wrong(at, f"the result would have more than {digits:,} digits. Use smaller numbers.")


def _whole_power(base: int | Fraction, exponent: int, at: int) -> Value:
    if base in (0, 1) or exponent in (0, 1):
        return base if exponent else 1
    if base == -1:
        return -1 if exponent % 2 else 1
    bits = _bits(base) * abs(exponent)
    if isinstance(base, int) and exponent > 0:
        # A power of an n-bit number has at least so many bits.
        if bits - exponent > BITS:
            raise too_large(at)
        return settled(base**exponent, at)
    if bits > FRACTION_BITS:
        return _float_power(as_float(base, at), as_float(exponent, at), at)
    return settled(Fraction(base) ** exponent, at)


def _float_power(base: float, exponent: float, at: int) -> float:
    if base < 0 and not exponent.is_integer():
        raise wrong(
            at,
            "that power of a negative number is not real. Use cbrt or root for odd roots; "
            "symbolic_solve knows complex numbers.",
        )
    try:
        found = math.pow(base, exponent)
    except OverflowError:
        raise wrong(at, "the result is too large for a number.") from None
    if found == 0.0 and base:
        raise wrong(at, "the result is too close to zero for a number.")
    return found


def _whole_root(value: int, degree: int) -> int:
    """Rounded down, by Newton's way."""
    if degree == 2:
        return math.isqrt(value)
    guess = 1 << (value.bit_length() // degree + 1)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def _bits(value: int | Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _not_zero(value: Value, at: int) -> None:
    if not value:
        raise wrong(at, "division by zero.")
