"""Gives one file of an archive."""

import base64
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.archive.asking import archive_at
from toolgate.tools.means import Means
from toolgate.tools.system.contents import least, shown
from toolgate.tools.system.spot import MEGABYTE


async def archive_file(
    means: Means,
    _call: Call,
    *,
    path: str,
    member: str,
    encoding: str = "auto",
    offset: int = 0,
    length: int = MEGABYTE,
) -> dict[str, Any]:
    """The text of a file in an archive, or a piece of it."""
    most = least(length, encoding)
    async with archive_at(means, path) as archive:
        found = await archive.about("member", name=member, begin=offset, most=most)
    size: int = found["size"]
    if offset > size:
        raise ToolError(
            f"{found['name']!r} has {size:,} bytes: an offset of {offset:,} is behind its end."
        )
    content = base64.b64decode(found["content"])
    piece = shown(
        found["name"],
        size,
        content,
        base64.b64decode(found["head"]),
        offset=offset,
        is_end=offset + len(content) >= size,
        encoding=encoding,
    )
    member_path = piece.pop("path")
    return {"path": archive.shown, "member": member_path, **piece}
