"""The world in memory, and how old it may be when it is asked."""

import asyncio

from toolgate import clock
from toolgate.errors import StoreError, StoreUnavailable
from toolgate.tenancy.audit import Actor
from toolgate.tenancy.changes import Change
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.world import World

FRESHEN_SECONDS = 2.0
_NO_ANSWER = (
    "The store does not answer, so nobody can tell whether this is still allowed. "
    "Nothing ran; try again when it is back."
)


class Present:
    """Holds the world. A look at the store serves everyone who had asked before it began."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        # One at a time: a world that was read earlier must not replace one that was read later.
        self._taking = asyncio.Lock()
        # Looks are counted as they begin. The newest that succeeded, and that failed:
        self._begun = 0
        self._seen = 0
        self._failed = 0
        self._asked_ns = clock.monotonic_ns()
        # The look that begins when the one that is under way is over, for all who wait for it.
        self._next: asyncio.Task[None] | None = None
        self.world = World(revision=-1)

    @property
    def age_ns(self) -> int:
        """How long ago the last look that succeeded began."""
        return clock.monotonic_ns() - self._asked_ns

    async def refresh(self) -> bool:
        """Take over what other nodes changed; whether anything had."""
        async with self._taking:
            return await self._look()

    async def freshen(self) -> None:
        """Look at the store after this was called, or `StoreUnavailable`.

        Who asks while a look is under way waits for the next one, together with all the others.
        """
        if not self._taking.locked():
            await self._freshened()
            return
        if self._next is None:
            self._next = asyncio.create_task(self._after_this(), name="toolgate-freshen")
            # Whoever waits is told; asked for here so that the loop does not warn.
            self._next.add_done_callback(lambda look: look.cancelled() or look.exception())
        # Whoever goes away must not end what others wait for.
        await asyncio.shield(self._next)

    async def _after_this(self) -> None:
        """Of those who wait for it, some came while it waited: no look but its own will do."""
        try:
            async with asyncio.timeout(FRESHEN_SECONDS), self._taking:
                # Who comes from now on waits for another.
                self._next = None
                await self._look()
        except (TimeoutError, StoreError):
            raise StoreUnavailable(_NO_ANSWER) from None
        finally:
            if self._next is asyncio.current_task():
                self._next = None

    async def _freshened(self) -> None:
        before = self._begun
        try:
            async with asyncio.timeout(FRESHEN_SECONDS), self._taking:
                if self._seen > before:
                    return
                if self._failed > before:
                    raise StoreUnavailable(_NO_ANSWER)
                await self._look()
        except (TimeoutError, StoreError):
            raise StoreUnavailable(_NO_ANSWER) from None

    async def put(self, changes: tuple[Change, ...], actor: Actor) -> None:
        """Store the changes, and see them."""
        async with self._taking:
            await self._directory.put(changes, actor)
            await self._look(certain=True)

    async def _look(self, *, certain: bool = False) -> bool:
        self._begun += 1
        number, asked_ns = self._begun, clock.monotonic_ns()
        try:
            changed = certain or await self._directory.revision() != self.world.revision
            if changed:
                self.world = await self._directory.load(self.world)
        except StoreError:
            self._failed = number
            raise
        self._seen, self._asked_ns = number, asked_ns
        return changed
