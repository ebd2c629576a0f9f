"""A JSON value that cannot change: its bytes, read back as a fresh value."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Self, cast

import orjson

MAX_BYTES = 512 * 1024
MAX_DEPTH = 64
MAX_NODES = 20_000
NON_FINITE = "it has no word for NaN and infinity"


class Document:
    """JSON as its author ordered it. `canonical` gives the form that digests are made of."""

    __slots__ = ("raw",)

    raw: bytes

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @classmethod
    def of(cls, value: object) -> Self:
        """The document of a JSON value. A value that is none, or too large, raises `ValueError`."""
        measure(value)
        raw = _dumped(value, 0)
        if len(raw) > MAX_BYTES:
            raise ValueError(f"is {len(raw):,} bytes; at most {MAX_BYTES:,} are taken")
        return cls(raw)

    def value(self) -> Any:
        """A fresh copy that the caller may change."""
        return orjson.loads(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        shown = self.raw.decode()
        return f"Document({shown if len(shown) <= 60 else shown[:57] + '…'})"


def canonical(value: object) -> bytes:
    """The one byte form of a JSON value: sorted keys, no white space, UTF-8."""
    return _dumped(value, orjson.OPT_SORT_KEYS)


def _dumped(value: object, option: int) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ValueError(f"is not JSON ({error})") from None


def sha256(raw: bytes) -> str:
    """The digest, in the form that records and pins use."""
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def measure(value: object, *, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES) -> None:
    """Refuse what is not plain JSON, too deep or too large, without recursion."""
    level: list[object] = [value]
    nodes = depth = 0
    while level:
        depth += 1
        nodes += len(level)
        if depth > max_depth:
            raise ValueError(f"is nested deeper than {max_depth} levels")
        below: list[object] = []
        for node in level:
            if type(node) is str:
                continue
            below += _children(node)
            # A value that holds another many times is small in memory and large when written out.
            if nodes + len(below) > max_nodes:
                raise ValueError(f"has more than {max_nodes:,} values")
        level = below


def _children(node: object) -> Collection[object]:
    if isinstance(node, dict):
        fields = cast("dict[object, object]", node)
        for key in fields:
            if not isinstance(key, str):
                raise ValueError(f"has the key {_shown(key)}, which is not a text")
        return fields.values()
    if isinstance(node, (list, tuple)):
        return cast("Sequence[object]", node)
    if isinstance(node, float) and not math.isfinite(node):
        raise ValueError(f"holds {node}, which JSON has no word for")
    if node is None or isinstance(node, (str, bool, float, int)):
        return ()
    raise ValueError(f"holds a {type(node).__name__}, which is not JSON")


def has_non_finite(value: object) -> bool:
    """Whether a value holds NaN or infinity, which orjson writes as null without a word.

    Worth asking only where there is a null in what it wrote.
    """
    if type(value) is dict:
        # Texts hold none, and can be long.
        fields = cast("dict[object, object]", value)
        value = {key: one for key, one in fields.items() if type(one) is not str}
    try:
        json.dumps(value, allow_nan=False, default=_parts)
    except ValueError:
        return True
    return False


def _parts(value: object) -> object:
    """What orjson looks into where `json` does not."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value))
        return {name: getattr(value, name) for name in names if not name.startswith("_")}
    return None


def _shown(key: object) -> str:
    return repr(key)[:60] if isinstance(key, (int, float)) else f"a {type(key).__name__}"
