"""Lists that come by the page: a cursor names the last that was shown, and nothing else."""

import base64
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault, Params

PAGE = 1_000


class Item(NamedTuple):
    """One of a list: what it is sorted by, and as it is shown."""

    key: str
    shown: dict[str, Any]


def paged(name: str, items: Sequence[Item], params: Params) -> dict[str, Any]:
    """One page of a sorted list, under its name. What comes or goes meanwhile moves no other."""
    after = after_of(params.get("cursor"))
    start = bisect_right(items, after, key=_key) if after else 0
    some = items[start : start + PAGE]
    found: dict[str, Any] = {name: [one.shown for one in some]}
    if start + PAGE < len(items):
        found["nextCursor"] = cursor_of(some[-1].key)
    return found


def cursor_of(key: str) -> str:
    """What leads behind this one."""
    return base64.urlsafe_b64encode(b"after:" + key.encode()).decode()


def after_of(cursor: Any) -> str:
    """The one that a cursor leads behind; nothing where there is none."""
    if cursor is None:
        return ""
    try:
        mark, _, key = base64.b64decode(cursor, altchars=b"-_", validate=True).partition(b":")
        if mark != b"after" or not key:
            raise _no_cursor()
        return key.decode()
    except (TypeError, ValueError):
        raise _no_cursor() from None


def _key(item: Item) -> str:
    return item.key


def _no_cursor() -> Fault:
    return Fault(INVALID_PARAMS, "This cursor leads nowhere; list without one from the start.")
