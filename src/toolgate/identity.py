"""Names of tenants and agents, plain enough that no two can be mistaken for each other, and the
length of all others.
"""

import re

from toolgate.errors import InvalidRequest

_ARTICLES = {"tenant": "a", "agent": "an"}
# In bytes. Several of them make an index of the store together, whose rows have an end.
_MOST_TEXT = 512
# No character takes more than six bytes, also where a store has to write its escape.
_SURELY_FITS = _MOST_TEXT // 6
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


def plain(kind: str, given: str) -> str:
    """A name fit to be stored, or `InvalidRequest`. Case, spaces and look-alikes are refused."""
    if not isinstance(given, str) or not _PLAIN.match(given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"{str(given)[:80]!r} cannot name {_ARTICLES[kind]} {kind}. "
            "Use 1 to 63 lower-case letters, digits, - and _, starting with a letter or digit."
        )
    return given


def texts(of: str, **fields: object) -> None:
    """Fit to stand in a record, or `InvalidRequest`."""
    for name, value in fields.items():
        if type(value) is not str:
            raise InvalidRequest(f"{name!r} of a {of} is a text, not a {type(value).__name__}.")
        if len(value) > _SURELY_FITS and _bytes(value) > _MOST_TEXT:
            raise InvalidRequest(
                f"{name!r} of a {of} is a text of at most {_MOST_TEXT} bytes in UTF-8. Nothing "
                "ran: send a shorter one, such as an id."
            )


def printable(of: str, **fields: str) -> None:
    """Fit to be read by people, or `InvalidRequest`: nothing in it moves or hides text."""
    for name, value in fields.items():
        if not value.isprintable():
            raise InvalidRequest(
                f"{name!r} of a {of} has a sign that cannot be seen, such as a line end or a "
                "control character. Nothing ran: send visible text, such as an id."
            )


def _bytes(text: str) -> int:
    """As it is kept: what UTF-8 or a store cannot hold is written as an escape."""
    if len(text) > _MOST_TEXT:
        return len(text)
    return len(text.encode("utf-8", "backslashreplace")) + 3 * text.count("\0")
