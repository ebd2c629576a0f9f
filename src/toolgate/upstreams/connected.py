"""One MCP server, as the rest of the house uses it: whatever carries it, and healed by itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from toolgate import clock
from toolgate.asked import Line
from toolgate.errors import ToolgateError
from toolgate.upstreams import headers
from toolgate.upstreams.asking import Asking
from toolgate.upstreams.failures import raise_told, unavailable
from toolgate.upstreams.keeper import Dial, Keeper
from toolgate.upstreams.lists import CHANGED, Lists
from toolgate.upstreams.message import Json
from toolgate.upstreams.pulse import LEFT, Pulse
from toolgate.upstreams.rounds import answered_in_rounds
from toolgate.upstreams.upstream import Kind
from toolgate.upstreams.watches import Watches
from toolgate.upstreams.wire import Wire

_UPDATED = "notifications/resources/updated"


class Connected:
    """The port for an upstream, over one connection that is kept."""

    def __init__(
        self,
        name: str,
        dial: Dial,
        *,
        asks: frozenset[str] = frozenset(),
        timeout: float = 30.0,
        is_modern: bool | None = None,
    ) -> None:
        """`dial` makes a connection; `asks` is what its server may ask of callers; `timeout` is for
        what nobody gave a time; `is_modern` is the revision, where an operator has chosen it.
        """
        self.name = name
        self._timeout = timeout
        self._asking = Asking(name, asks)
        self._lists = Lists()
        self._pulse = Pulse(timeout)
        self._watches = Watches(self._asked_quietly)
        self._keeper = Keeper(
            dial,
            self,
            asks=asks,
            begun=self._begun,
            changed=self._all_changed,
            is_modern=is_modern,
        )

    @property
    def problem(self) -> str:
        """Why it is away, in words for an operator."""
        return self._keeper.problem

    @property
    def last_words(self) -> Sequence[str]:
        """What its program wrote on its standard error before it ended."""
        return self._keeper.last_words

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it said it has, empty before it was reached."""
        return self._keeper.welcome.capabilities

    @property
    def server_info(self) -> Mapping[str, Any]:
        """How it calls itself."""
        return self._keeper.welcome.info

    @property
    def instructions(self) -> str:
        """What it tells models about itself: text of others, and no instruction of ours."""
        return self._keeper.welcome.instructions

    @property
    def revision(self) -> str:
        """The revision of MCP that is spoken with it."""
        return self._keeper.welcome.version

    async def open(self, seconds: float = 10.0) -> None:
        """Begin, and wait until it is reached or the first try has failed; `problem` says which."""
        await self._keeper.tried(seconds)

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """The result of `tools/call`, whole."""
        wire = self._keeper.wire
        if wire is None:
            wire = await self._reached(seconds)
        try:
            result = await wire.call(tool, args, seconds=seconds, line=line, meta=meta)
        except BaseException as error:  # noqa: BLE001  what it was is told by kind
            self._failed(wire, error, seconds)
        if result.get("resultType", "complete") == "complete":
            return result
        params: Json = {"name": tool, "arguments": args}
        return await self._rounds(wire, "tools/call", params, result, seconds, line, meta)

    async def request(
        self, method: str, params: Json, *, seconds: float, line: Line | None = None
    ) -> Json:
        """Any other request."""
        wire = await self._reached(seconds)
        try:
            result = await wire.ask(method, params, seconds=seconds, line=line)
        except BaseException as error:  # noqa: BLE001
            self._failed(wire, error, seconds)
        if result.get("resultType", "complete") == "complete":
            return result
        return await self._rounds(wire, method, params, result, seconds, line, None)

    async def _rounds(
        self,
        wire: Wire,
        method: str,
        params: Json,
        result: Json,
        seconds: float,
        line: Line | None,
        meta: Mapping[str, Any] | None,
    ) -> Json:
        until_ns = clock.monotonic_ns() + int(seconds * 1e9)

        async def again(more: Json) -> Json:
            left = max((until_ns - clock.monotonic_ns()) / 1e9, 0.001)
            return await wire.ask(method, params | more, seconds=left, line=line, meta=meta)

        try:
            return await answered_in_rounds(result, again, self._asking, line)
        except BaseException as error:  # noqa: BLE001
            self._failed(wire, error, seconds)

    async def listed(self, kind: Kind) -> Sequence[Json]:
        """All pages of one list, kept until the server says that it has changed."""
        wire = await self._reached(self._timeout)

        async def ask(method: str, params: Json) -> Json:
            return await wire.ask(method, params, seconds=self._timeout)

        welcome = self._keeper.welcome
        try:
            found = await self._lists.listed(
                kind, ask, welcome.capabilities, is_modern=welcome.is_modern
            )
        except BaseException as error:  # noqa: BLE001
            self._failed(wire, error, self._timeout)
        if kind is Kind.TOOLS and welcome.is_modern:
            wire.repeat(_repeated(found))
        return found

    async def watch(self, uri: str, told: Callable[[str], object]) -> Callable[[], None]:
        """Hear when a resource changes, until what is returned is called."""
        wire = await self._reached(self._timeout)
        return await self._watches.add(wire, self._keeper.welcome, uri, told)

    def on_changed(self, told: Callable[[Kind], object]) -> None:
        """Hear when one of its lists has changed, and when it went or came back."""
        self._lists.on_changed(told)

    async def close(self) -> None:
        """End it, and whatever was started for it."""
        self._lists.close()
        await self._watches.close()
        await self._pulse.close()
        await self._keeper.close()

    # What its server says by itself.

    def noted(self, method: str, params: Json) -> None:
        """A notification."""
        kinds = CHANGED.get(method)
        if kinds is not None:
            self._lists.change(*kinds)
        elif method == _UPDATED:
            self._watches.updated(params.get("uri"))

    def missed(self) -> None:
        """Whatever can change may have."""
        self._all_changed()
        self._watches.all_updated()

    async def asked(self, method: str, params: Json, line: Line | None) -> Json:
        """A request of the server's."""
        return await self._asking.request(method, params, line)

    # Going and coming.

    async def _reached(self, seconds: float) -> Wire:
        wire = self._keeper.wire
        if wire is None:
            await self._keeper.tried(seconds)
            wire = self._keeper.wire
            if wire is None:
                raise unavailable(self.name, self._keeper.why, self._keeper.wait_left())
        return wire

    def _failed(self, wire: Wire, error: BaseException, seconds: float) -> NoReturn:
        """Tell of a request that has no answer; who left it lying has to show that it is there."""
        if isinstance(error, LEFT):
            self._pulse.doubt(wire, is_modern=self._keeper.welcome.is_modern)
        if not isinstance(error, Exception):
            raise error
        raise_told(self.name, error, seconds)

    async def _begun(self, wire: Wire) -> None:
        """A new connection knows nothing of what was wanted from the one before."""
        await self._watches.begin(wire, self._keeper.welcome)

    def _all_changed(self) -> None:
        self._lists.change(*Kind)
        self._lists.tell_now()

    async def _asked_quietly(self, method: str, params: Json) -> None:
        try:
            await self.request(method, params, seconds=self._timeout)
        except ToolgateError:
            return


def _repeated(tools: Sequence[Json]) -> dict[str, dict[tuple[str, ...], str]]:
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for one in tools:
        name, wanted = one.get("name"), headers.repeated(one.get("inputSchema"))
        if wanted and type(name) is str:
            found[name] = wanted
    return found
