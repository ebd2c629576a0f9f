"""When keys were used: noted in memory, and written behind."""

import asyncio
import contextlib

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.tenancy.directory import Directory

# So often it is looked whether there is anything to write, and so often a key is written at most.
_LOOK = 5.0
_AGAIN_NS = 60_000_000_000


class Uses:
    """A door notes each use by its id, which costs next to nothing; a task does the rest."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._fresh: set[str] = set()
        self._written: dict[str, int] = {}
        self.note = self._fresh.add

    async def known(self) -> dict[str, int]:
        """When each key was last used, as far as anybody has written it; here, up to now."""
        found = dict(await self._directory.uses())
        now_ns = clock.unix_ns()
        return found | dict.fromkeys(self._fresh, now_ns)

    async def write(self, *, all_: bool = False) -> None:
        """What was used since it was last written; of each key no more than one row a minute."""
        now_ns = clock.unix_ns()
        written = self._written
        due = {
            id_: now_ns for id_ in self._fresh if all_ or now_ns - written.get(id_, 0) >= _AGAIN_NS
        }
        if not due:
            return
        await self._directory.note_uses(due)
        self._fresh.difference_update(due)
        written.update(due)
        for id_ in [id_ for id_, at_ns in written.items() if now_ns - at_ns >= _AGAIN_NS]:
            del written[id_]

    async def keep_writing(self) -> None:
        """Until the house closes, which writes what is left."""
        try:
            while True:
                await asyncio.sleep(_LOOK)
                # Nobody waits for it, and it is tried again.
                with contextlib.suppress(StoreError):
                    await self.write()
        finally:
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self.write(all_=True)
