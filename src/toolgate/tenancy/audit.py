"""Who changed what, when and why. Written with the change itself, or neither is."""

from collections.abc import Mapping
from typing import Any

import msgspec

LIBRARY = "library"


class Actor(msgspec.Struct, frozen=True):
    """Who makes a change, and why."""

    who: str = LIBRARY
    why: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One change on record. `tenant` is empty where it concerns everyone."""

    id: int
    at_ns: int
    who: str
    why: str
    tenant: str
    change: str
    details: Mapping[str, Any]
