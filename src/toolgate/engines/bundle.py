"""A policy that was checked: modules, data, and what follows from them. Immutable."""

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import orjson

# How a list is decided; see the modules of the same names in `policy/`.
Listing = Literal["list_names", "list_direct", "list_call", "list_view"]
Calling = Literal["call_direct", "call_both"]


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is given. `modules` are texts by file, the gate's own among them."""

    revision: str
    modules: Mapping[str, str]
    data: Mapping[str, Any]
    reads: frozenset[str]
    listing: Listing
    # How many files of rules there are, and how many of data.
    files: int = 0
    documents: int = 0

    @property
    def by_name(self) -> bool:
        """Whether a list is decided by names alone, without the tools' documents."""
        return self.listing == "list_names"


def revision_of(modules: Mapping[str, str], data: Mapping[str, Any]) -> str:
    """A short name of the whole: another one as soon as anything differs."""
    whole = orjson.dumps([dict(modules), data], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(whole).hexdigest()[:16]
