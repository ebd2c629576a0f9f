"""Searches in the files of an archive."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.archive.asking import archive_at
from toolgate.tools.means import Means


async def archive_search(
    means: Means,
    _call: Call,
    *,
    path: str,
    query: str,
    pattern: str = "",
    case_sensitive: bool = False,
    limit: int = 100,
) -> dict[str, Any]:
    """Names and lines that hold a text."""
    question = {
        "query": query,
        "pattern": pattern,
        "case_sensitive": case_sensitive,
        "limit": limit,
    }
    async with archive_at(means, path) as archive:
        return {"path": archive.shown, **await archive.about("search", question=question)}
