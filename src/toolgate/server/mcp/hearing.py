"""What one client hears of other servers, as long as it listens and may."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from toolgate.caller import Caller
from toolgate.errors import ToolgateError, Unauthenticated
from toolgate.server.mcp.others import PATIENCE, Others, Share
from toolgate.upstreams.upstream import Json, Kind

log = logging.getLogger("toolgate.server")
RESOURCES = "resources/list_changed"
PROMPTS = "prompts/list_changed"
UPDATED = "resources/updated"
# Lists of tools are told by the catalog, which has looked at them first.
_LISTS = {Kind.RESOURCES: RESOURCES, Kind.TEMPLATES: RESOURCES, Kind.PROMPTS: PROMPTS}
MOST = 256


class _Due(NamedTuple):
    server: str
    kind: Kind
    method: str
    uri: str = ""


class Hearing:
    """Watches what the client wants to hear of. Before anything is told the gate is asked anew."""

    def __init__(
        self, others: Others, caller: Caller, tell: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._others = others
        self._caller = caller
        self._tell = tell
        # By URI: whose it is, and what ends the watch.
        self._watched: dict[str, tuple[str, Callable[[], None]]] = {}
        # Each once, however often it has changed.
        self._due: dict[_Due, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._is_open = True
        others.hearings.add(self)
        others.follow()

    @property
    def watched(self) -> frozenset[str]:
        """Of which resources it hears."""
        return frozenset(self._watched)

    async def watch(self, share: Share, uri: str) -> bool:
        """Whether it hears when this changes."""
        if uri in self._watched:
            return True
        if len(self._watched) >= MOST or not tells(share):
            return False
        if not self._others.allowance.take(self._caller.key, uri):
            return False

        def told(which: str) -> None:
            self._add(_Due(share.server, Kind.RESOURCES, UPDATED, which))

        try:
            async with asyncio.timeout(PATIENCE):
                leave = await share.upstream.watch(uri, told)
        except BaseException as error:
            self._others.allowance.give(self._caller.key, uri)
            if isinstance(error, (ToolgateError, TimeoutError)):
                return False
            raise
        if not self._is_open or uri in self._watched:
            # It went, or asked twice, while the server was asked.
            leave()
            self._others.allowance.give(self._caller.key, uri)
            return self._is_open
        self._watched[uri] = share.server, leave
        return True

    def drop(self, uri: str) -> None:
        """It does not want to hear of this any more."""
        _server, leave = self._watched.pop(uri, ("", None))
        if leave is not None:
            leave()
            self._others.allowance.give(self._caller.key, uri)

    def changed(self, server: str, kind: Kind) -> None:
        """One of a server's lists has changed."""
        method = _LISTS.get(kind)
        if method is not None:
            self._add(_Due(server, _asked_of(kind), method))

    def close(self) -> None:
        """It has gone; nothing of it stays."""
        self._is_open = False
        self._others.hearings.discard(self)
        for uri in tuple(self._watched):
            self.drop(uri)
        if self._telling is not None:
            self._telling.cancel()

    def _add(self, due: _Due) -> None:
        if not self._is_open or len(self._due) >= 2 * MOST:
            return
        self._due[due] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._flush(), name="toolgate-mcp-hearing")

    async def _flush(self) -> None:
        while self._due and self._is_open:
            due, self._due = tuple(self._due), {}
            try:
                may = await self._may()
            except Unauthenticated:
                # Whoever watches its key closes the line.
                return
            except ToolgateError as error:
                log.warning("a listener could not be told (%s)", error.code)
                return
            for one in due:
                if (one.server, one.kind) in may:
                    self._tell(one.method, {"uri": one.uri} if one.uri else {})
            for uri, (server, _leave) in tuple(self._watched.items()):
                if (server, Kind.RESOURCES) not in may:
                    self.drop(uri)

    async def _may(self) -> set[tuple[str, Kind]]:
        found: set[tuple[str, Kind]] = set()
        for kind in (Kind.RESOURCES, Kind.PROMPTS):
            shares = await self._others.shares(self._caller, kind)
            found.update((one.server, kind) for one in shares)
        return found


def tells(share: Share) -> bool:
    """Whether its server says when a resource changes."""
    has = share.upstream.capabilities.get("resources")
    return type(has) is dict and bool(cast("Json", has).get("subscribe"))


def _asked_of(kind: Kind) -> Kind:
    return Kind.RESOURCES if kind is Kind.TEMPLATES else kind
