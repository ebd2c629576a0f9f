"""What is kept of a version that was agreed to, and how another one differs from it."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from toolgate.plugins.package import Package
from toolgate.tenancy.servers import Pin
from toolgate.upstreams.suspicion import shown

# Under which its last version is pinned; others by their fingerprints.
LAST = "last"
# As a server is pinned, and no server can be called.
PREFIX = "plugin:"
_MOST_TEXT = 64 * 1024
_MOST_KEPT = 256 * 1024
_MOST_LINES = 400
_MOST_SHOWN = 400


def pins_of(package: Package, version: str) -> dict[str, Pin]:
    """What is put on record of a version: once whole, to compare the next one with."""
    digest = package.fingerprint
    whole = {"version": version, "files": dict(package.digests), "texts": _texts(package)}
    return {LAST: Pin(digest, whole), digest: Pin(digest, {"version": version})}


def last_of(package: Package, version: str) -> dict[str, Pin]:
    """As above, where no older version need be known again."""
    return {LAST: pins_of(package, version)[LAST]}


def differences(agreed: Mapping[str, Any] | None, package: Package) -> list[str]:
    """A line for each file that is new, gone or another, with what is different in it."""
    lines = list(_lines(agreed or {}, package))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES:,} more"]
    return [shown(line, _MOST_SHOWN) for line in lines]


def _lines(agreed: Mapping[str, Any], package: Package) -> Iterator[str]:
    before: Mapping[str, str] = agreed.get("files", {})
    texts: Mapping[str, str] = agreed.get("texts", {})
    now = package.digests
    for path in sorted({*before, *now}):
        if path not in now:
            yield f"gone: {path}"
        elif path not in before:
            yield f"new: {path} ({len(package.files[path]):,} bytes)"
            # Of a plugin that is new as a whole, its files are there to be read.
            yield from _changed("", _text(package.files[path]) or "") if before else ()
        elif before[path] != now[path]:
            yield f"changed: {path} ({len(package.files[path]):,} bytes)"
            after = _text(package.files[path])
            if path in texts and after is not None:
                yield from _changed(texts[path], after)


def _changed(before: str, after: str) -> Iterator[str]:
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    for number, line in enumerate(found):
        # The first two name the files, which is said already.
        if number > 1:
            yield f"  {line}"


def _texts(package: Package) -> dict[str, str]:
    kept: dict[str, str] = {}
    left = _MOST_KEPT
    for path in sorted(package.files):
        text = _text(package.files[path])
        if text is not None and len(text) <= left:
            kept[path] = text
            left -= len(text)
    return kept


def _text(raw: bytes) -> str | None:
    if len(raw) > _MOST_TEXT:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
