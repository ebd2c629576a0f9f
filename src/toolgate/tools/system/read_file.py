"""Reads a file: all of it or a piece."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.system.contents import lines as read_lines
from toolgate.tools.system.contents import piece
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import MEGABYTE
from toolgate.tools.system.threaded import threaded


async def read_file(
    means: Means,
    _call: Call,
    *,
    path: str,
    encoding: str = "auto",
    offset: int = 0,
    length: int = MEGABYTE,
    line: int | None = None,
    lines: int = 1_000,
) -> dict[str, Any]:
    """The text of a file in a root folder. In a thread: a disk may be slow."""
    roots = Roots.of(means)
    if line is not None:
        return await threaded(read_lines, roots, path, line=line, count=lines, encoding=encoding)
    return await threaded(piece, roots, path, offset=offset, length=length, encoding=encoding)
