"""Questions about an archive in a root: its bytes are read here, and looked at by a worker."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.archive.limits import ARCHIVE, SECONDS
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded
from toolgate.tools.working.parcel import Parcel

_WORK = "toolgate.tools.archive.work:"


class Asked:
    """One archive, as it was when it was read: all answers are about the same bytes."""

    def __init__(self, means: Means, shown: str, content: bytes) -> None:
        self._means = means
        self.shown = shown
        self.size = len(content)
        self._content = content

    async def about(self, verb: str, **args: Any) -> dict[str, Any]:
        """What a worker says; it has so long, and is ended then."""
        return (await self.taken(verb, **args)).value

    async def taken(self, verb: str, **args: Any) -> Parcel:
        """What a worker says, with bytes of the archive beside it."""
        return await self._means.workers.ask(
            _WORK + verb, args, seconds=SECONDS, content=self._content
        )


@contextlib.asynccontextmanager
async def archive_at(means: Means, path: str) -> AsyncGenerator[Asked]:
    """The archive at a path. Only so many are in memory at a time; others wait for theirs."""
    async with means.large.held():
        shown, content = await threaded(_content, Roots.of(means), path)
        yield Asked(means, shown, content)


def _content(roots: Roots, path: str) -> tuple[str, bytes]:
    with roots.reading(path) as spot, spot.open_file():
        found = spot.stat()
        if found is not None and found.st_size > ARCHIVE:
            raise ToolError(
                f"{spot.shown!r} has {found.st_size:,} bytes, and archives are read up to "
                f"{ARCHIVE:,}. Pack it in parts."
            )
        return spot.shown, spot.read(ARCHIVE)
