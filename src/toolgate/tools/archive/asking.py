"""Questions about an archive in a root: its bytes are read here, and looked at by a worker."""

import asyncio
import base64
from typing import Any, cast

from toolgate.errors import ToolError
from toolgate.tools.archive.limits import ARCHIVE, SECONDS
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots

_WORK = "toolgate.tools.archive.work:"


class Asked:
    """One archive, as it was when it was read: all answers are about the same bytes."""

    def __init__(self, means: Means, shown: str, content: bytes) -> None:
        self._means = means
        self.shown = shown
        self.size = len(content)
        self._data = base64.b64encode(content).decode()

    async def about(self, verb: str, **args: Any) -> dict[str, Any]:
        """What a worker says; it has so long, and is ended then."""
        given = {"data": self._data, **args}
        found = await self._means.workers.run(_WORK + verb, given, seconds=SECONDS)
        return cast("dict[str, Any]", found)


async def archive_at(means: Means, path: str) -> Asked:
    """The archive at a path."""
    shown, content = await asyncio.to_thread(_content, Roots.of(means), path)
    return Asked(means, shown, content)


def _content(roots: Roots, path: str) -> tuple[str, bytes]:
    with roots.reading(path) as spot, spot.open_file():
        found = spot.stat()
        if found is not None and found.st_size > ARCHIVE:
            raise ToolError(
                f"{spot.shown!r} has {found.st_size:,} bytes, and archives are read up to "
                f"{ARCHIVE:,}. Pack it in parts."
            )
        return spot.shown, spot.read(ARCHIVE)
