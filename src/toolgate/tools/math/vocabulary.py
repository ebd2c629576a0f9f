"""The functions and constants that expressions may use, by name; nothing else can be called."""

import difflib
import math
from collections.abc import Iterable
from typing import NamedTuple


class Arity(NamedTuple):
    """How many arguments a function takes."""

    least: int
    most: int

    def __str__(self) -> str:
        if self.most >= MANY:
            return f"{self.least} or more arguments"
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least > 1 else ''}"
        return f"{self.least} to {self.most} arguments"


MANY = 500
_ONE, _TWO, _SOME = Arity(1, 1), Arity(2, 2), Arity(1, MANY)

FUNCTIONS: dict[str, Arity] = {
    **dict.fromkeys(("abs", "sign", "floor", "ceil", "trunc"), _ONE),
    **dict.fromkeys(("sqrt", "cbrt", "exp", "expm1", "log1p", "log2", "log10"), _ONE),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), _ONE),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), _ONE),
    **dict.fromkeys(("degrees", "radians"), _ONE),
    **dict.fromkeys(("factorial", "gamma", "lgamma", "erf", "erfc"), _ONE),
    **dict.fromkeys(("atan2", "pow", "root", "mod", "comb", "bitxor"), _TWO),
    **dict.fromkeys(("min", "max", "sum", "prod", "mean", "median", "gcd", "lcm", "hypot"), _SOME),
    "log": Arity(1, 2),
    "round": Arity(1, 2),
    "perm": Arity(1, 2),
    "clamp": Arity(3, 3),
    "if": Arity(3, 3),
}
# Other names for the same.
ALIASES = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "average": "mean",
    "avg": "mean",
    "binomial": "comb",
    "ceiling": "ceil",
    "choose": "comb",
    "deg": "degrees",
    "deg2rad": "radians",
    "fabs": "abs",
    "fact": "factorial",
    "ln": "log",
    "maximum": "max",
    "minimum": "min",
    "nCr": "comb",
    "ncr": "comb",
    "nPr": "perm",
    "npr": "perm",
    "power": "pow",
    "product": "prod",
    "rad": "radians",
    "rad2deg": "degrees",
    "sgn": "sign",
    "where": "if",
    "xor": "bitxor",
}
# What is said of many numbers is another tool's.
ELSEWHERE = frozenset(
    {
        *("stdev", "std", "stddev", "sd", "pstdev", "variance", "var", "pvariance", "mode"),
        *("percentile", "quantile", "quartile", "correlation", "corr", "skew", "kurtosis"),
    }
)
# These take their arguments as a list too.
LISTS = frozenset(name for name, arity in FUNCTIONS.items() if arity is _SOME)
CONSTANTS = {
    "pi": math.pi,
    "e": math.e,
    "tau": math.tau,
    "phi": (1 + math.sqrt(5)) / 2,
}
TRUTHS = {"true": True, "false": False, "True": True, "False": False}
# They are part of the grammar, so that no variable has such a name.
KEYWORDS = frozenset({"and", "or", "not", "if", "else"})


def suggestion(word: str, known: Iterable[str]) -> str:
    """` Did you mean "…"?`, where something known looks like it; else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{near[0]}"?' if near else ""
