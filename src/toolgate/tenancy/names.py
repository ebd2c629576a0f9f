"""Names and words an operator gives: no two can be mistaken for each other, and all can be kept."""

import difflib
import re
from collections.abc import Collection, Iterable

from toolgate.errors import InvalidRequest

_LABEL = re.compile(r"[A-Za-z0-9._:@-]{1,64}\Z")
_MODULE = re.compile(r"[a-z0-9_-]{1,64}\Z")
_USER = re.compile(r"[^\s\x00-\x1f\x7f#]{1,256}\Z")
# In UTF-8, as it stands in the records of calls.
_MOST_USER_BYTES = 512
_MOST_WORDS = 500
# Comparing a name with many others takes long enough to be noticed.
_MOST_COMPARED = 1_000


def label(kind: str, given: str) -> str:
    """The name of a role, a persona or a layer, or `InvalidRequest`."""
    if not isinstance(given, str) or not _LABEL.match(given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"{str(given)[:80]!r} cannot name a {kind}. "
            "Use 1 to 64 letters from a to z in either case, digits and - _ . : @"
        )
    return given


def labels(kind: str, given: Iterable[str]) -> tuple[str, ...]:
    """Several of them; one text in their place would be taken letter by letter."""
    if isinstance(given, str):
        raise InvalidRequest(f"Give each {kind} by itself: ({given[:80]!r},).")
    return tuple(label(kind, one) for one in given)


def module(given: str) -> str:
    """The name of a policy module, or `InvalidRequest`."""
    if not isinstance(given, str) or not _MODULE.match(given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"{str(given)[:80]!r} cannot name a policy. "
            "Use 1 to 64 lower-case letters, digits, - and _."
        )
    return given


def user(given: str) -> str:
    """The name of a user, as a relation can hold it, or `InvalidRequest`."""
    if (
        not isinstance(given, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        or not _USER.match(given)
        or not given.isprintable()
        or len(given.encode()) > _MOST_USER_BYTES
    ):
        raise InvalidRequest(
            f"{str(given)[:80]!r} cannot name a user: 1 to 256 characters without spaces, # and "
            f"control characters, at most {_MOST_USER_BYTES} bytes in UTF-8."
        )
    return given


def words(kind: str, given: str) -> str:
    """A reason on one line, or `InvalidRequest`."""
    if not isinstance(given, str) or len(given) > _MOST_WORDS or not given.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"The {kind} is one line of at most {_MOST_WORDS} characters, without control "
            "characters. Nothing was changed."
        )
    return given


def nearest(name: str, known: Collection[str]) -> str:
    """A hint where one of the known names is close."""
    close = difflib.get_close_matches(name[:80], known, n=1) if len(known) <= _MOST_COMPARED else []
    return f" Did you mean {close[0]!r}?" if close else ""
