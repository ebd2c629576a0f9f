"""Where a list goes on: an opaque text that stands for the last thing on a page.

It opens nothing, since every page is decided like the first one. The tag in it says which list it
belongs to, so that what was cut off or carried to another list is refused. It is no secret: what is
made up with a tag that fits can stand anywhere in the list, and is refused where it is nothing that
the list is sorted by.
"""

import base64
import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, cast

import msgspec
import orjson

from toolgate.errors import InvalidRequest
from toolgate.server.request import Request

T = TypeVar("T")
# A number that every store can hold.
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_TAG = 8
_LONGEST = 1_024
# What says how much of a list is shown, not which list it is.
_HOW_MUCH = frozenset({"limit", "cursor", "before", "format"})


class Page(NamedTuple):
    """Some of a list, and what to send as `cursor` for more."""

    rows: Sequence[Any]
    next: str | None


def page(
    request: Request,
    rows: Sequence[T],
    key: Callable[[T], Any],
    *,
    default: int = 1_000,
    most: int = 10_000,
) -> Page:
    """One page of rows that are sorted by this key, which is plain JSON."""
    limit = request.number("limit", default=default, most=most)
    last = opened(request, Any)
    try:
        start = 0 if last is None else bisect_right(rows, _like(key, rows, last), key=key)
    except TypeError:
        raise _unread("cursor") from None
    shown = rows[start : start + limit]
    goes_on = start + limit < len(rows)
    return Page(shown, made(request, key(shown[-1])) if goes_on and shown else None)


def made(request: Request, last: Any) -> str:
    """The cursor behind this one."""
    raw = orjson.dumps(last)
    return base64.urlsafe_b64encode(_tag(request, raw) + raw).rstrip(b"=").decode()


def opened(request: Request, kind: Any, name: str = "cursor") -> Any:
    """What the cursor stands for, of this kind, or `InvalidRequest`; `None` where none was sent."""
    given = request.query.get(name)
    if given is None:
        return None
    try:
        return msgspec.convert(_read(request, given), kind)
    except (ValueError, msgspec.ValidationError):
        raise _unread(name) from None


def _unread(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{name!r} is the 'next' of the page before, of the same list with the same fields. "
        "Begin again without it."
    )


def _read(request: Request, given: str) -> Any:
    if len(given) > _LONGEST:
        raise ValueError("too long")
    padded = given.encode("ascii") + b"=" * (-len(given) % 4)
    whole = base64.b64decode(padded, altchars=b"-_", validate=True)
    tag, raw = whole[:_TAG], whole[_TAG:]
    if tag != _tag(request, raw):
        raise ValueError("of another list")
    return orjson.loads(raw)


def _tag(request: Request, raw: bytes) -> bytes:
    which = sorted(item for item in request.query.items() if item[0] not in _HOW_MUCH)
    of = orjson.dumps([request.path, which])
    return hashlib.blake2b(b"%d:%b%b" % (len(of), of, raw), digest_size=_TAG).digest()


def _like(key: Callable[[T], Any], rows: Sequence[T], last: Any) -> Any:
    """The key as rows have it, or `TypeError`: JSON has lists where they have tuples."""
    if not rows:
        return last
    given = tuple(cast("list[Any]", last)) if type(last) is list else last
    if _kinds(given) != _kinds(key(rows[0])):
        raise TypeError("of another kind")
    return given


def _kinds(key: Any) -> list[type]:
    parts = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    return [type(parts), *map(type, parts)] if isinstance(key, tuple) else [type(key)]
