"""Those who hold a stream open, and what ends it once their key opens nothing any more.

Every process has its own, and sees within a second what another one revoked: calls ask the gate by
themselves, and a stream that only waits asks nobody.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from toolgate.server.auth import stands
from toolgate.tenancy.keys import Key
from toolgate.tenancy.world import World

EVERY = 1.0
Whose = Callable[[], Key]


class Holders:
    """Looks at their keys while there are any; a timer of the loop, and nothing to be closed."""

    def __init__(self, world: Callable[[], World]) -> None:
        self._world = world
        self._held: dict[int, tuple[Whose, Callable[[], None]]] = {}
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def held(self, whose: Whose, end: Callable[[], None]) -> Generator[None]:
        """While this is open, `end` is called once if `whose()` opens nothing any more.

        The key is asked for anew each time: a later token goes on with what an earlier one began.
        """
        self._number += 1
        number = self._number
        self._held[number] = whose, end
        if self._timer is None:
            self._again()
        try:
            yield
        finally:
            self._held.pop(number, None)
            if not self._held and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._look)

    def _look(self) -> None:
        world = self._world()
        for number, (whose, end) in tuple(self._held.items()):
            if not stands(whose(), world):
                del self._held[number]
                end()
        self._timer = None
        if self._held:
            self._again()
