"""Who hears of changes in a server's resources."""

import asyncio
from collections.abc import Awaitable, Callable

from toolgate.errors import Overloaded
from toolgate.upstreams.failures import AwayError, BrokenError
from toolgate.upstreams.message import Json
from toolgate.upstreams.wire import Welcome, Wire

# All that one server is told of, whoever watches it.
MOST, MOST_LETTERS = 10_000, 1024 * 1024
# A server is told of all of them at once: so seldom at least, and more seldom the longer that is.
_PAUSE, _LETTERS_A_SECOND = 0.2, 1_000_000
_SUBSCRIBE, _UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"


class Watches:
    """By resource. The server is told of the first who watches one, and of the last who leaves."""

    def __init__(self, ask: Callable[[str, Json], Awaitable[None]]) -> None:
        self._ask = ask
        self._told: dict[str, list[Callable[[str], object]]] = {}
        self._letters = 0
        self._wire: Wire | None = None
        self._is_modern = False
        # What a server of the older revision was told of.
        self._known: set[str] = set()
        # Done when the server was told of what is watched now.
        self._next: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self, wire: Wire, welcome: Welcome) -> None:
        """A new connection is told of all of them."""
        self._wire, self._is_modern = wire, welcome.is_modern
        self._known.clear()
        if not welcome.is_modern:
            await wire.listen(())
        self._change()

    async def add(
        self, wire: Wire, welcome: Welcome, uri: str, told: Callable[[str], object]
    ) -> Callable[[], None]:
        """One more who hears of it; what is returned ends that. `Overloaded` where it is full."""
        is_first = uri not in self._told
        if is_first:
            if len(self._told) >= MOST or self._letters + len(uri) > MOST_LETTERS:
                raise Overloaded(
                    "Too many resources of this server are watched; try again later.",
                    retry_after=60,
                )
            self._letters += len(uri)
        self._told.setdefault(uri, []).append(told)

        def leave() -> None:
            heard = self._told.get(uri, [])
            if told in heard:
                heard.remove(told)
            if uri in self._told and not heard:
                del self._told[uri]
                self._letters -= len(uri)
                self._change()

        if is_first:
            self._wire, self._is_modern = wire, welcome.is_modern
            try:
                if welcome.is_modern:
                    await asyncio.shield(self._change())
                else:
                    self._known.add(uri)
                    await self._ask(_SUBSCRIBE, {"uri": uri})
            except BaseException:
                # Whoever gives up waiting watches nothing.
                leave()
                raise
        return leave

    def updated(self, uri: object) -> None:
        """The server says that one has changed. It may be one below what is watched."""
        if type(uri) is not str:
            return
        for watched in self._above(uri):
            for told in tuple(self._told.get(watched, ())):
                told(uri)

    def _above(self, uri: str) -> list[str]:
        """What is watched and may mean it: looked for in whichever is less."""
        if uri.count("/") >= len(self._told):
            return [one for one in self._told if uri == one or uri.startswith(_below(one))]
        ends = [at for at, letter in enumerate(uri) if letter == "/"]
        above = [uri, *(uri[:at] for at in ends), *(uri[: at + 1] for at in ends)]
        return [one for one in dict.fromkeys(above) if one in self._told]

    def all_updated(self) -> None:
        """Any may have changed."""
        for uri, heard in tuple(self._told.items()):
            for told in tuple(heard):
                told(uri)

    async def close(self) -> None:
        """Nobody hears any more."""
        self._told.clear()
        self._letters = 0
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _change(self) -> asyncio.Future[None]:
        """Have the server told soon: once, of however many changes."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._settle(), name="toolgate-mcp-watches")
        return self._next

    async def _settle(self) -> None:
        while self._next is not None:
            done, self._next = self._next, None
            try:
                await self._tell()
            except (AwayError, BrokenError):
                # The next connection is told of all.
                pass
            finally:
                if not done.done():
                    done.set_result(None)
            await asyncio.sleep(_PAUSE + self._letters / _LETTERS_A_SECOND)

    async def _tell(self) -> None:
        wire = self._wire
        if wire is None or wire.gone.done():
            return
        if self._is_modern:
            await wire.listen(tuple(self._told))
            return
        new, old = self._told.keys() - self._known, self._known - self._told.keys()
        self._known.update(new)
        self._known -= old
        for method, uris in ((_SUBSCRIBE, new), (_UNSUBSCRIBE, old)):
            for uri in uris:
                if self._wire is not wire or wire.gone.done():
                    return
                await self._ask(method, {"uri": uri})


def _below(uri: str) -> str:
    return uri if uri.endswith("/") else f"{uri}/"
