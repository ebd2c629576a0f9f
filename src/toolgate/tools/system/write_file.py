"""Writes a file, whole or not at all, and keeps what was there."""

import base64
import binascii
import posixpath
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.system.backups import Backups
from toolgate.tools.system.changing import digest, done, planned, remove_empty
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import MEGABYTE, NotThere
from toolgate.tools.system.threaded import threaded


async def write_file(
    means: Means,
    call: Call,
    *,
    path: str,
    content: str,
    mode: str = "overwrite",
    encoding: str = "utf-8",
    create_parents: bool = False,
) -> dict[str, Any]:
    """Write or append. The backup is on the shelf before anything is changed."""
    data = _bytes(content, encoding)
    roots = Roots.of(means)
    made: list[str] = []
    folder = posixpath.dirname(path)
    if create_parents:
        made = await threaded(roots.make_folders, folder)
    try:
        change = await threaded(planned, roots, path, data, mode=mode)
        backups = Backups(means.shelf, call.caller)
        name = await backups.keep(change.backup(tuple(made)), change.kept)
        await threaded(done, roots, change)
    except NotThere:
        remove_empty(roots, made)
        raise ToolError(
            f"There is no folder {folder[:200]!r} to write into; nothing was changed. Set "
            "create_parents to true to have it made, or look with list_directory at what is there."
        ) from None
    except ToolError:
        # It says that nothing happened.
        remove_empty(roots, made)
        raise
    return {
        "path": change.path,
        "size": len(change.new),
        "written": len(data),
        "created": change.over is None,
        "sha256": digest(change.new),
        "backup": name,
    }


def _bytes(content: str, encoding: str) -> bytes:
    try:
        if encoding == "base64":
            data = base64.b64decode(content, validate=True)
        else:
            data = content.encode(encoding)
    except (binascii.Error, ValueError):
        what = "no base64" if encoding == "base64" else f"not all to be written as {encoding}"
        raise ToolError(f"The content is {what}. Use the encoding 'utf-8' for text.") from None
    if len(data) > MEGABYTE:
        raise ToolError(
            f"The content has {len(data):,} bytes, and at most {MEGABYTE:,} are written at once. "
            "Write the first part, and append the others."
        )
    return data
