"""Words of an expression: numbers, names and signs, each with where it stands."""

import re
from fractions import Fraction
from typing import NamedTuple

from toolgate.errors import ToolError

LONGEST = 1_000
# A number's power of ten; more than what a float holds in either direction.
EXPONENT = 400

NUMBER, NAME, SIGN, END = "number", "name", "sign", "end"
# ASCII digits alone, and letters of two alphabets: nothing here is ever folded to something else.
_WORD = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<based>0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+)"
    r"|(?P<number>(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z\u03b1-\u03c9\u0391-\u03a9][A-Za-z0-9_\u03b1-\u03c9\u0391-\u03a9]*(?:\[[0-9]{1,3}\])?)"
    r"|(?P<sign>\*\*|//|<<|>>|==|!=|<=|>=|[-+*/%^()\[\],<>=!&|~]|[\u00d7\u00f7\u2212\u00b7\u22c5≤≥≠])"
)
_SIGNS = {
    "^": "**",
    "\u00d7": "*",
    "\u00b7": "*",
    "\u22c5": "*",
    "\u00f7": "/",
    "\u2212": "-",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
}
# What people write by hand, and how it is written here.
_INSTEAD = {
    "√": "sqrt(x)",
    "∛": "cbrt(x)",
    "°": "radians(x): sin(radians(30))",
    "²": "^2",
    "³": "^3",
    "½": "1/2",
    "¼": "1/4",
    "¾": "3/4",
    "∑": "sum(a, b, c)",
    "∏": "prod(a, b, c)",
    "±": "each of the two by itself",
    "€": "the number alone",
    "$": "the number alone",
}
_NAMES = {"π": "pi", "τ": "tau", "φ": "phi"}


class Token(NamedTuple):
    """A word, from `at` up to `end`."""

    kind: str
    text: str
    at: int
    end: int


def wrong(at: int, sentence: str) -> ToolError:
    """What is wrong, and where: columns count from 1."""
    return ToolError(f"Column {at + 1}: {sentence}")


def words(text: str) -> list[Token]:
    """All of a text; the last one is its end."""
    if len(text) > LONGEST:
        raise ToolError(
            f"The expression has {len(text):,} characters and may have {LONGEST:,}. Shorten it, or "
            "give numbers by variables."
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise wrong(at, _unreadable(text[at]))
        kind, word = match.lastgroup or "", match.group()
        if kind != "space":
            found.append(Token(*_meant(kind, word, at), at, match.end()))
        at = match.end()
    found.append(Token(END, "", at, at))
    return found


def is_name(text: str) -> bool:
    """Whether all of a text is one name, and an expression has it as it is written."""
    match = _WORD.fullmatch(text) if len(text) <= LONGEST else None
    named = match is not None and match.lastgroup == "name"
    return named and "__" not in text and text not in _NAMES


def number(token: Token) -> int | Fraction:
    """The value of a number, exactly."""
    text = token.text.replace("_", "").lower()
    if text[:2] in ("0x", "0b", "0o"):
        return int(text, 0)
    mantissa, _, power = text.partition("e")
    whole, _, part = mantissa.partition(".")
    if len(power) > 5 or abs(int(power or 0)) > EXPONENT:
        raise wrong(token.at, f"a number's exponent is at most {EXPONENT} here.")
    shift = int(power or 0) - len(part)
    digits = int(whole + part or "0")
    if shift >= 0:
        return digits * 10**shift
    value = Fraction(digits, 10**-shift)
    return value.numerator if value.denominator == 1 else value


def _meant(kind: str, word: str, at: int) -> tuple[str, str]:
    if kind == "sign":
        return SIGN, _SIGNS.get(word, word)
    if kind == "name":
        if "__" in word:
            raise wrong(at, "a name has no double underscore.")
        return NAME, _NAMES.get(word, word)
    return NUMBER, word


def _unreadable(sign: str) -> str:
    if sign in "\"'`":
        return "there are no texts in an expression, only numbers, names and operators."
    if sign == ".":
        return "a dot belongs to a number; nothing has attributes or methods here."
    if sign in "{}":
        return f'"{sign}" has no meaning here; group with ( and ).'
    # What cannot be seen is told by its number.
    shown = f'"{sign}"' if sign.isprintable() else ascii(sign)
    instead = _INSTEAD.get(sign)
    hint = f" Write {instead}." if instead else ""
    return f"{shown} has no meaning in an expression.{hint}"
