"""URIs with names in them: whether another one fits, and what its names are then.

Both look at a URI once, from its start to its end: a client writes it, and others wait meanwhile.
"""

import re
from functools import lru_cache
from urllib.parse import unquote

from toolgate.spec.tool import Resource

# No URI that anybody uses is longer.
MOST = 4_096
_NAME = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_EXPRESSION = re.compile(r"\{[^{}]*\}")
# No value goes beyond its part of the URI.
_END = re.compile(r"[/?#]")


def matched(resource: Resource, uri: str) -> dict[str, str] | None:
    """The arguments that stand in a URI; `None` where it is not of this resource.

    A value ends where what follows its name comes first.
    """
    if uri == resource.uri and not resource.names:
        return {}
    first, *rest = _parts(resource.uri)
    if not rest or len(uri) > MOST or not uri.startswith(first):
        return None
    values: list[str] = []
    at = len(first)
    for number, part in enumerate(rest, 1):
        is_last = number == len(rest)
        end = len(uri) - len(part) if is_last else uri.find(part, at + 1)
        if end <= at or (is_last and not uri.endswith(part)):
            return None
        value = uri[at:end]
        if _END.search(value):
            return None
        values.append(unquote(value))
        at = end + len(part)
    return dict(zip(resource.names, values, strict=True))


def fits(template: str, uri: str) -> bool:
    """Whether a URI can be of a template: what stands between its names is there, in order. Which
    values they may have its server knows.
    """
    if template == uri:
        return True
    first, *rest = _EXPRESSION.split(template)
    if not rest or not first or not uri.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = uri.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(uri) - len(rest[-1]) >= at and uri.endswith(rest[-1])


@lru_cache(maxsize=1_024)
def _parts(template: str) -> tuple[str, ...]:
    """What stands before, between and behind its names."""
    return tuple(_NAME.split(template))
