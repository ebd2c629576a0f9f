"""Who hears of changes in a server's resources."""

import asyncio
from collections.abc import Awaitable, Callable

from toolgate.upstreams.message import Json
from toolgate.upstreams.wire import Welcome, Wire

_MOST = 10_000


class Watches:
    """By resource. The server is told of the first who watches one, and of the last who leaves."""

    def __init__(self, ask: Callable[[str, Json], Awaitable[None]]) -> None:
        self._ask = ask
        self._told: dict[str, list[Callable[[str], object]]] = {}
        self._wire: Wire | None = None
        self._is_modern = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, wire: Wire, welcome: Welcome) -> None:
        """A new connection is told of all of them."""
        self._wire, self._is_modern = wire, welcome.is_modern
        wire.listen(tuple(self._told))
        if not welcome.is_modern:
            for uri in self._told:
                self._later("resources/subscribe", uri)

    async def add(
        self, wire: Wire, welcome: Welcome, uri: str, told: Callable[[str], object]
    ) -> Callable[[], None]:
        """One more who hears of it; what is returned ends that."""
        is_first = uri not in self._told
        if len(self._told) < _MOST or not is_first:
            self._told.setdefault(uri, []).append(told)
        if is_first:
            if welcome.is_modern:
                wire.listen(tuple(self._told))
            else:
                await self._ask("resources/subscribe", {"uri": uri})

        def leave() -> None:
            heard = self._told.get(uri, [])
            if told in heard:
                heard.remove(told)
            if uri in self._told and not heard:
                del self._told[uri]
                self._left(uri)

        return leave

    def updated(self, uri: object) -> None:
        """The server says that one has changed. It may be one below what is watched."""
        if type(uri) is not str:
            return
        for watched, heard in tuple(self._told.items()):
            if uri == watched or uri.startswith(watched.rstrip("/") + "/"):
                for told in tuple(heard):
                    told(uri)

    def all_updated(self) -> None:
        """Any may have changed."""
        for uri in tuple(self._told):
            self.updated(uri)

    async def close(self) -> None:
        """Nobody hears any more."""
        self._told.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _left(self, uri: str) -> None:
        if self._wire is None or self._wire.gone.done():
            return
        if self._is_modern:
            self._wire.listen(tuple(self._told))
        else:
            self._later("resources/unsubscribe", uri)

    def _later(self, method: str, uri: str) -> None:
        async def work() -> None:
            await self._ask(method, {"uri": uri})

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
