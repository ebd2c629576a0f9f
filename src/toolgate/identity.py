"""Names of tenants and agents: plain enough that no two can be mistaken for each other."""

import re

from toolgate.errors import InvalidRequest

_ARTICLES = {"tenant": "a", "agent": "an"}
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


def plain(kind: str, given: str) -> str:
    """A name fit to be stored, or `InvalidRequest`. Case, spaces and look-alikes are refused."""
    if not isinstance(given, str) or not _PLAIN.match(given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"{str(given)[:80]!r} cannot name {_ARTICLES[kind]} {kind}. "
            "Use 1 to 63 lower-case letters, digits, - and _, starting with a letter or digit."
        )
    return given
