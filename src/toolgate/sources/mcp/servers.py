"""The MCP servers of the house: those of the settings, and those that operators added."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import orjson
from pydantic import ValidationError

from toolgate.catalog.catalog import Catalog
from toolgate.errors import CatalogError, InvalidRequest, ToolgateError
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp import naming
from toolgate.sources.mcp.admission import Admission
from toolgate.sources.mcp.away import Away
from toolgate.sources.mcp.judging import House
from toolgate.sources.mcp.source import McpSource
from toolgate.sources.mcp.trial import Tried, tried
from toolgate.tenancy.names import nearest
from toolgate.tenancy.servers import NONE
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Kind, Upstream

log = logging.getLogger("toolgate")
Make = Callable[[str, McpServer], Awaitable[Upstream]]
# How soon a change by another node is seen, and how often a server that keeps changing is asked.
_LOOK = 0.5
_QUIET = 0.5
# One that changes while it is looked at is looked at again, so often.
_CHECKS = 3
_NONE: Mapping[str, McpServer] = MappingProxyType({})
NOT_ASKED = "this command asks no servers."


class Upstreams(Mapping[str, Upstream]):
    """The connections, by name, as they are now."""

    def __init__(self, members: Mapping[str, Member]) -> None:
        self._members = members

    def __getitem__(self, name: str) -> Upstream:
        return self._members[name].upstream

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._members))

    def __len__(self) -> int:
        return len(self._members)


class Servers:
    """Connects what is configured, and keeps the catalog in step with what it says."""

    def __init__(  # noqa: PLR0913  what it stands on, once, by name
        self,
        settings: Mapping[str, McpServer],
        catalog: Catalog,
        tenancy: Tenancy,
        *,
        members: dict[str, Member],
        make: Make,
        path: Callable[[str], Path],
        admission: Admission,
        asks: bool = True,
        beside: Callable[[], Mapping[str, McpServer]] = lambda: _NONE,
    ) -> None:
        """`members` is what the provider looks into; `make` connects one; `asks`: whether any is
        asked for more than an operator wants to see tried. `beside`: what plugins bring.
        """
        self.beside = beside
        self.asks = asks
        self.admission = admission
        self.settings = settings
        self._catalog = catalog
        self._tenancy = tenancy
        self._members = members
        self._make = make
        self._path = path
        self._sources: dict[str, McpSource] = {}
        self._seen = NONE
        self._following = asyncio.Lock()
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._checks: dict[str, asyncio.Task[object]] = {}

    @property
    def sources(self) -> Mapping[str, McpSource]:
        """Those that are in use, by name."""
        return self._sources

    def wanted(self) -> dict[str, McpServer]:
        """All that are switched on; one of the settings stands before one of its name that was
        added.
        """
        found = dict(self.settings)
        for name, given in self._tenancy.world.servers.added.items():
            try:
                found.setdefault(name, McpServer.model_validate_json(_json(given)))
            except ValidationError as error:
                # It was checked when it was added; by another version, perhaps.
                log.warning("MCP server %r cannot be used (%s)", name, type(error).__name__)
        for name, given in self.beside().items():
            found.setdefault(name, given)
        return {name: one for name, one in found.items() if one.enabled}

    def source(self, name: str) -> McpSource:
        """One that is in use, or `InvalidRequest`."""
        found = self._sources.get(name)
        if found is None:
            raise InvalidRequest(
                f"There is no MCP server {name[:80]!r} that is in use."
                + nearest(name, self._sources)
            )
        return found

    async def follow(self) -> None:
        """Connect what is new, end what is gone, and look again at what was agreed to."""
        async with self._following:
            before, self._seen = self._seen, self._tenancy.world.servers
            wanted = self.wanted()
            for name, source in list(self._sources.items()):
                if wanted.get(name) != source.member.settings:
                    await self._end(name, source)
            new = [name for name in wanted if name not in self._sources]
            for name in new:
                self._sources[name] = await self._begun(name, wanted[name])
            pins, agreed = before.pins, self._seen.pins
            again = [
                name for name in self._sources if name in new or pins.get(name) != agreed.get(name)
            ]
            await self._ask(*again)

    async def look(self, name: str, patience: float) -> McpSource:
        """Ask one server now, however long it has been silent."""
        source = self.source(name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await source.answered()
        await self._ask(name)
        return source

    async def tried(self, name: str, patience: float) -> Tried:
        """How a server is that is switched on, by a connection for this alone."""
        settings = self.wanted()[name]
        why = self._refusal(name, settings)
        upstream = Away(name, why) if why else await self._made(name, settings)
        member = Member(name, settings, upstream)
        source = self._source(member, why, later=lambda: None, agrees=False)
        return await tried(source, patience)

    async def run(self) -> None:
        """Follow the world, and servers that change, until the house closes."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._wake.wait()
            self._wake.clear()
            try:
                if self._tenancy.world.servers is not self._seen:
                    await self.follow()
                due, self._dirty = self._dirty, set()
                if due:
                    await self._ask(*(name for name in due if name in self._sources))
                    # A server that shouts is asked so often at most.
                    await asyncio.sleep(_QUIET)
            except ToolgateError as error:
                log.warning("MCP servers could not be looked at: %s", error)

    async def close(self) -> None:
        """End every connection, and whatever was started for it."""
        for check in self._checks.values():
            check.cancel()
        sources = list(self._sources.values())
        self._sources.clear()
        self._members.clear()
        await asyncio.gather(*(source.close() for source in sources), return_exceptions=True)

    async def _begun(self, name: str, settings: McpServer) -> McpSource:
        why = self._refusal(name, settings)
        if not self.asks:
            upstream: Upstream = Away(name, NOT_ASKED, is_problem=False)
        else:
            upstream = Away(name, why) if why else await self._made(name, settings)
        member = Member(name, settings, upstream)
        member.check = lambda: self._checked(name)
        upstream.on_changed(lambda kind: self._changed(member, kind))
        self._members[name] = member
        return self._source(member, why, later=lambda: self._soon(name), asks=self.asks)

    def _source(
        self,
        member: Member,
        why: str,
        *,
        later: Callable[[], object],
        asks: bool = True,
        agrees: bool = True,
    ) -> McpSource:
        overlay = member.settings.overlay
        return McpSource(
            member,
            self._tenancy,
            house=self._house,
            file=self._path(overlay) if overlay and not why else None,
            later=later,
            asks=asks,
            agrees=agrees,
        )

    def _refusal(self, name: str, settings: McpServer) -> str:
        """It may have been added while the settings still listed what it uses."""
        is_ours = name in self.settings or self.beside().get(name) is settings
        return "" if is_ours else self.admission.refusal(settings)

    async def _made(self, name: str, settings: McpServer) -> Upstream:
        try:
            return await self._make(name, settings)
        except ToolgateError as error:
            return Away(name, error.message)

    async def _end(self, name: str, source: McpSource) -> None:
        del self._sources[name]
        self._members.pop(name, None)
        await self._catalog.drop(source)
        await source.close()

    async def _ask(self, *names: str) -> None:
        sources = [self._sources[name] for name in names if name in self._sources]
        if not sources:
            return
        try:
            await self._catalog.ask(*sources)
        except CatalogError as error:
            log.warning("the catalog stays as it was: %s", error)

    async def _checked(self, name: str) -> None:
        """Compare what a server has with what was agreed to: once for all who wait for it."""
        check = self._checks.get(name)
        if check is None or check.done():
            check = self._checks[name] = asyncio.create_task(self._settled(name))
        await asyncio.shield(check)

    async def _settled(self, name: str) -> None:
        for _ in range(_CHECKS):
            source = self._sources.get(name)
            if source is None or source.member.is_checked:
                return
            # A server that is on its way is waited for; the call's own time bounds that.
            await source.answered()
            await self._ask(name)
            if source.problem:
                return

    def _changed(self, member: Member, kind: Kind) -> None:
        if kind is Kind.TOOLS or member.upstream.problem:
            # Also one that is back, or knew us no more, may be another.
            member.doubt()
        # Also what it has beside tools has some that stand for it, where there is any.
        self._soon(member.name)

    def _soon(self, name: str) -> None:
        self._dirty.add(name)
        self._wake.set()

    def _house(self, server: str) -> House:
        """What there is beside a server's own tools."""
        specs = {
            name: spec
            for name, spec in self._catalog.current.specs.items()
            if spec.origin.kind != "mcp" or spec.origin.where != server
        }
        words = [name for name, spec in specs.items() if spec.origin.kind != "mcp"]
        named = list(specs)
        for name, source in self._sources.items():
            if name != server:
                words += source.words
                prefix = source.member.settings.prefix
                if prefix is not None:
                    # Some that come at once are not in the catalog yet.
                    named += [f"{prefix}{word}" for word in source.words]
        by_spelling = {naming.spelled(name): name for name in named}
        return House(frozenset(specs), naming.skeletons(words), by_spelling)


def _json(given: object) -> bytes:
    return orjson.dumps(given, default=dict)
