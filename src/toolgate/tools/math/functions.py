"""What the functions of expressions mean for one exact value."""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from toolgate.tools.math import arithmetic
from toolgate.tools.math.arithmetic import BITS, Value, as_float, settled, too_large, whole
from toolgate.tools.math.tokens import wrong

Function = Callable[[tuple[Value, ...], int], Value]
_PLACES = 400
_CHOSEN = 2_000
# Above, a logarithm of the gamma function is not exact enough to tell how long a product gets.
_ESTIMATED = 10**12


def _float_function(name: str, domain: str) -> Function:
    """One of `math`, with a sentence for what it has no value for."""
    function: Callable[[float], float] = getattr(math, name)

    def applied(given: tuple[Value, ...], at: int) -> Value:
        try:
            return settled(function(as_float(given[0], at)), at)
        except ValueError:
            raise wrong(at, f"{name} {domain}.") from None
        except OverflowError:
            raise wrong(at, f"the result of {name} is too large for a number.") from None

    return applied


def _circular(name: str) -> Function:
    """`sin`, `cos` or `tan`, as of the number that is meant: of pi, where the nearest float is."""
    function: Callable[[float], float] = getattr(math, name)

    def applied(given: tuple[Value, ...], at: int) -> Value:
        number = as_float(given[0], at)
        found = function(number)
        # So much does the rounding of the argument alone change.
        blur = abs(number) * sys.float_info.epsilon if isinstance(given[0], float) else 0.0
        if abs(found) <= blur:
            return 0.0
        if abs(found) * blur >= 1.0:
            raise wrong(at, f"{name} has no value there.")
        return found

    return applied


def _sqrt(given: tuple[Value, ...], at: int) -> Value:
    value = given[0]
    if value < 0:
        raise wrong(
            at,
            "the square root of a negative number is not real; symbolic_solve knows complex ones.",
        )
    if isinstance(value, float):
        return math.sqrt(value)
    found = arithmetic.exact_root(value, 2)
    return math.sqrt(as_float(value, at)) if found is None else settled(found, at)


def _root(given: tuple[Value, ...], at: int) -> Value:
    value, degree = given[0], whole(given[1], at)
    if degree == 0:
        raise wrong(at, "there is no root of degree 0.")
    if value >= 0 or degree % 2 == 0:
        return arithmetic.power(value, Fraction(1, degree), at)
    return _negative(_root((_negative(value), degree), at))


def _negative(value: Value) -> Value:
    return -value


def _cbrt(given: tuple[Value, ...], at: int) -> Value:
    return _root((given[0], 3), at)


def _log(given: tuple[Value, ...], at: int) -> Value:
    value = given[0]
    if len(given) > 1:
        return _log_to(value, given[-1], at)
    if value <= 0:
        raise wrong(at, "log is for positive numbers.")
    return math.log(value if isinstance(value, int) else as_float(value, at))


def _log_to(value: Value, base: Value, at: int) -> Value:
    if value <= 0 or base <= 0 or base == 1:
        raise wrong(at, "log is for positive numbers, and for a base that is positive and not 1.")
    number = value if isinstance(value, int) else as_float(value, at)
    found = math.log(number) / math.log(as_float(base, at))
    near = round(found)
    if isinstance(value, float) or isinstance(base, float) or abs(near) > BITS:
        return found
    if abs(found - near) < 1e-9 and abs(near) * Fraction(base).numerator.bit_length() <= BITS:
        return near if Fraction(base) ** near == value else found
    return found


def _factorial(given: tuple[Value, ...], at: int) -> Value:
    number = whole(given[0], at)
    if number < 0:
        raise wrong(at, "a factorial is for whole numbers from 0 up; gamma(x+1) for others.")
    if number > BITS or math.lgamma(number + 1) / math.log(2) > BITS:
        raise too_large(at)
    return math.factorial(number)


def _comb(given: tuple[Value, ...], at: int) -> Value:
    total, chosen = _chosen(given, at)
    if chosen > total:
        return 0
    fewer = min(chosen, total - chosen)
    if fewer > _CHOSEN:
        raise wrong(at, f"comb chooses at most {_CHOSEN:,} here, or leaves at most as many.")
    if _product_bits(total, fewer) - _product_bits(fewer, fewer) > BITS:
        raise too_large(at)
    return settled(math.comb(total, chosen), at)


def _perm(given: tuple[Value, ...], at: int) -> Value:
    total, chosen = _chosen(given, at)
    if chosen > total:
        return 0
    if _product_bits(total, chosen) > BITS:
        raise too_large(at)
    return settled(math.perm(total, chosen), at)


def _chosen(given: tuple[Value, ...], at: int) -> tuple[int, int]:
    total, chosen = whole(given[0], at), whole(given[-1], at)
    if total < 0 or chosen < 0:
        raise wrong(at, "this is for whole numbers from 0 up.")
    return total, chosen


def _product_bits(total: int, count: int) -> float:
    """About how many bits the product of the `count` whole numbers up to `total` has."""
    if total > _ESTIMATED:
        return count * (total - count).bit_length()
    return (math.lgamma(total + 1) - math.lgamma(total - count + 1)) / math.log(2)


def _rounded(given: tuple[Value, ...], at: int) -> Value:
    if len(given) == 1:
        return settled(round(given[0]), at)
    places = whole(given[1], at)
    if abs(places) > _PLACES:
        raise wrong(at, f"it is rounded to at most {_PLACES} places.")
    return settled(round(given[0], places), at)


def _lcm(given: tuple[Value, ...], at: int) -> Value:
    return reduce(lambda one, two: settled(math.lcm(whole(one, at), whole(two, at)), at), given, 1)


def _sum(given: tuple[Value, ...], at: int) -> Value:
    return reduce(lambda one, two: arithmetic.add(one, two, at), given)


def _mean(given: tuple[Value, ...], at: int) -> Value:
    return arithmetic.divide(_sum(given, at), len(given), at)


def _hypot(given: tuple[Value, ...], at: int) -> Value:
    return _sqrt((_sum(tuple(arithmetic.multiply(one, one, at) for one in given), at),), at)


def _clamp(given: tuple[Value, ...], at: int) -> Value:
    value, least, most = given
    if least > most:
        raise wrong(at, "clamp(x, least, most) needs least to be at most most.")
    return min(max(value, least), most)


def _median(given: tuple[Value, ...], at: int) -> Value:
    ordered = sorted(given)
    middle = len(ordered) // 2
    return ordered[middle] if len(given) % 2 else _mean(tuple(ordered[middle - 1 : middle + 1]), at)


_EVERYWHERE = "has no value there"
_ONE_TO_ONE = "is for numbers from -1 to 1"
_POSITIVE = "is for positive numbers"

APPLIED: dict[str, Function] = {
    **{
        name: _float_function(name, _EVERYWHERE)
        for name in (
            "exp",
            "expm1",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "degrees",
            "radians",
            "erf",
            "erfc",
        )
    },
    **{name: _float_function(name, _ONE_TO_ONE) for name in ("asin", "acos")},
    **{name: _circular(name) for name in ("sin", "cos", "tan")},
    "atanh": _float_function("atanh", "is for numbers between -1 and 1"),
    "acosh": _float_function("acosh", "is for numbers from 1 up"),
    "log1p": _float_function("log1p", "is for numbers above -1"),
    "gamma": _float_function("gamma", "has no value at 0 and at negative whole numbers"),
    "lgamma": _float_function("lgamma", "has no value at 0 and at negative whole numbers"),
    "abs": lambda given, at: settled(abs(given[0]), at),
    "sign": lambda given, _at: (given[0] > 0) - (given[0] < 0),
    "floor": lambda given, at: settled(math.floor(given[0]), at),
    "ceil": lambda given, at: settled(math.ceil(given[0]), at),
    "trunc": lambda given, at: settled(math.trunc(given[0]), at),
    "round": _rounded,
    "sqrt": _sqrt,
    "cbrt": _cbrt,
    "root": _root,
    "pow": lambda given, at: arithmetic.power(given[0], given[1], at),
    "mod": lambda given, at: arithmetic.modulo(given[0], given[1], at),
    "log": _log,
    "log2": lambda given, at: _log_to(given[0], 2, at),
    "log10": lambda given, at: _log_to(given[0], 10, at),
    "atan2": lambda given, at: math.atan2(as_float(given[0], at), as_float(given[1], at)),
    "factorial": _factorial,
    "comb": _comb,
    "perm": _perm,
    "gcd": lambda given, at: math.gcd(*(whole(one, at) for one in given)),
    "lcm": _lcm,
    "bitxor": lambda given, at: whole(given[0], at) ^ whole(given[1], at),
    "min": lambda given, _at: min(given),
    "max": lambda given, _at: max(given),
    "sum": _sum,
    "prod": lambda given, at: reduce(lambda one, two: arithmetic.multiply(one, two, at), given),
    "mean": _mean,
    "median": _median,
    "hypot": _hypot,
    "clamp": _clamp,
}
