"""Letters between nodes, by way of the store: for the few things that only one of them can do.

Whoever waits for a person, holds a stream or runs a task looks for its letters twice a second;
a node that does none of this looks for nothing.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.shelf import Place, Shelf, Thing

log = logging.getLogger("toolgate.server")
LETTERS = "mcp.letters"
# They are no tenant's: none can be called this, and PostgreSQL shows them to the house alone.
_HOUSE = "*"
# Whom a letter is for that every node reads.
ALL = "*"
EVERY = 0.5
_MOST = 200
_SWEEP_NS = 120 * 10**9
# Those for all are not taken away by who reads them: each looks at the newest, once. The clocks of
# two nodes are never further apart.
_NEWEST_NS = 20 * 10**9
Handler = Callable[[Mapping[str, Any]], Awaitable[None]]
Unless = Callable[[Place, Thing], Awaitable[bool]]


async def _never(_place: Place, _thing: Thing) -> bool:
    return False


class Post:
    """One of each node. Without a shelf the node is on its own."""

    def __init__(self, shelf: Shelf | None) -> None:
        self.node = secrets.token_hex(4)
        self.shelf = shelf
        self._handlers: dict[str, Handler] = {}
        # Things of these kinds are thrown away when they are as old as this.
        self._ages: dict[str, tuple[int, Unless]] = {LETTERS: (_SWEEP_NS, _never)}
        self._held = 0
        self._until_ns = 0
        self._looking: asyncio.Task[None] | None = None
        self._seen: set[str] = set()
        self._swept_ns = clock.monotonic_ns()

    def on(self, kind: str, handler: Handler) -> None:
        """Who reads letters of this kind."""
        self._handlers[kind] = handler

    def sweeps(self, kind: str, age_ns: int, unless: Unless = _never) -> None:
        """What lies on the shelf for other nodes is nobody's in the end; `unless`: not yet."""
        self._ages[kind] = (age_ns, unless)

    @contextmanager
    def expecting(self) -> Generator[None]:
        """As long as this is open, letters are looked for."""
        self._held += 1
        self._begin()
        try:
            yield
        finally:
            self._held -= 1

    def linger(self, seconds: float) -> None:
        """Letters may come for so much longer."""
        self._until_ns = max(self._until_ns, clock.monotonic_ns() + round(seconds * 1e9))
        self._begin()

    def _begin(self) -> None:
        if self.shelf is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look(self.shelf), name="toolgate-mcp-post")

    async def send(self, node: str, kind: str, body: Mapping[str, Any]) -> None:
        """To a node that may be gone by now: nobody says whether it was read."""
        if self.shelf is None or node == self.node:
            return
        key = f"{_key(clock.unix_ns())}-{self.node}-{secrets.token_hex(4)}"
        thing = Thing(key=key, body={"kind": kind, "body": dict(body)})
        await self.shelf.put(Place(_HOUSE, LETTERS, node), [thing])

    async def close(self) -> None:
        """Nothing is read any more."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def _look(self, shelf: Shelf) -> None:
        place = Place(_HOUSE, LETTERS, self.node)
        while self._held or clock.monotonic_ns() < self._until_ns:
            await asyncio.sleep(EVERY)
            try:
                letters = await shelf.page(place, most=_MOST)
                for letter in letters:
                    await self._read(letter)
                if letters:
                    await shelf.remove(place, [letter.key for letter in letters])
                await self._look_at_all(shelf)
                await self._sweep(shelf)
            except StoreError:
                # They lie there until it is back.
                continue
        self._looking = None

    async def _look_at_all(self, shelf: Shelf) -> None:
        newest = _key(clock.unix_ns() - _NEWEST_NS)
        letters = await shelf.page(Place(_HOUSE, LETTERS, ALL), after=newest)
        seen, self._seen = self._seen, {letter.key for letter in letters}
        for letter in letters:
            if letter.key not in seen and f"-{self.node}-" not in letter.key:
                await self._read(letter)

    async def _read(self, letter: Thing) -> None:
        handler = self._handlers.get(str(letter.body.get("kind")))
        if handler is None:
            return
        try:
            await handler(letter.body["body"])
        except Exception as error:  # noqa: BLE001  one that cannot be read must not stop the rest
            log.warning("a letter of another node could not be read (%s)", type(error).__name__)

    async def _sweep(self, shelf: Shelf) -> None:
        if clock.monotonic_ns() - self._swept_ns < _SWEEP_NS:
            return
        self._swept_ns = clock.monotonic_ns()
        for kind, (age_ns, unless) in self._ages.items():
            oldest = clock.unix_ns() - age_ns
            for place in await shelf.places(kind):
                things = await shelf.page(place)
                aged = [one for one in things if one.updated_ns < oldest]
                old = [one.key for one in aged if not await unless(place, one)]
                if old:
                    await shelf.remove(place, old)


def _key(at_ns: int) -> str:
    """By this they stand in the order of their time."""
    return f"{at_ns:020d}"
