"""Tells what is in an archive, without unpacking it."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.archive.asking import archive_at
from toolgate.tools.means import Means
from toolgate.tools.system.globs import Glob

_MOST_PROBLEMS = 50


async def archive_open(
    means: Means, _call: Call, *, path: str, pattern: str = "", limit: int = 500
) -> dict[str, Any]:
    """Its entries with kinds and sizes, and what would keep it from being unpacked."""
    glob = Glob(pattern) if pattern else None
    async with archive_at(means, path) as archive:
        told = await archive.about("manifest")
    entries = told["entries"]
    chosen = [
        {"path": entry["name"].rstrip("/"), "kind": entry["kind"], "size": entry["size"]}
        for entry in entries
        if glob is None or glob.matches(entry["name"].rstrip("/"))
    ]
    return {
        "path": archive.shown,
        "format": told["format"],
        "packed": archive.size,
        "unpacked": sum(entry["size"] for entry in entries if entry["kind"] == "file"),
        "files": sum(entry["kind"] == "file" for entry in entries),
        "entries": chosen[:limit],
        "truncated": len(chosen) > limit,
        "extractable": not told["problems"],
        "problems": told["problems"][:_MOST_PROBLEMS],
    }
