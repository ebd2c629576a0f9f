"""The tools of one MCP server as a source of specs, down or not."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolgate.errors import InvalidRequest, SourceUnavailable, StoreError, ToolgateError
from toolgate.sources.mcp import overlay as overlays
from toolgate.sources.mcp import specs
from toolgate.sources.mcp.judging import House, Judge, Judged
from toolgate.sources.mcp.overlay import NOTHING, Overlay
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.servers import Pins
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Json, Kind

# How long a start waits for a server that nobody has seen before.
PATIENCE = 2.0
_BY = "toolgate"
_FIRST = "first seen"
_Stamp = tuple[int, int]


class McpSource:
    """One server. What it had last is offered while it is away, as its settings say."""

    required = False
    foreign = True

    def __init__(
        self,
        member: Member,
        tenancy: Tenancy,
        *,
        house: Callable[[str], House],
        file: Path | None,
        later: Callable[[], object],
    ) -> None:
        """`file` is its overlay; `later` is called when it has answered after all."""
        self.name = f"mcp server {member.name}"
        self.problem = ""
        self.member = member
        self.judged = Judged((), {}, {}, {}, ())
        # What its tools are called, agreed to or not.
        self.words: tuple[str, ...] = ()
        self._tenancy = tenancy
        self._house = house
        self._file = file
        self._later = later
        self._judge = Judge(member.name, member.settings)
        self._overlay: tuple[_Stamp | None, Overlay] = (None, NOTHING)
        self._listing: asyncio.Task[Sequence[Json]] | None = None
        self._last: Sequence[Mapping[str, Any]] | None = None
        self._kinds: tuple[str, ...] = ()
        self._waits = True

    @property
    def pins(self) -> Pins | None:
        """What is agreed to of it; `None` where nobody has seen it before."""
        return self._tenancy.world.servers.pins.get(self.member.name)

    async def load(self) -> Sequence[ToolSpec]:
        """Its specs: as it tells them, as it told them last, or as they were agreed to."""
        overlay = await asyncio.to_thread(self._overlaid)
        live, away = await self._listed()
        self.problem = away
        definitions = self._last if live is None else live
        if definitions is None:
            definitions = await self._stored(away)
        self._last = definitions
        try:
            judged = await self._judged(definitions, overlay, is_live=live is not None)
        except StoreError as error:
            raise SourceUnavailable(error.message) from None
        self.judged = judged
        self.member.held = {own: one.reason for own, one in judged.held.items()}
        self.member.is_checked = live is not None
        if live is not None:
            has = self.member.upstream.capabilities
            self._kinds = tuple(kind for kind in specs.STAND_INS if kind in has)
        self.problem = "; ".join(filter(None, (away, judged.problem)))
        found = [*judged.specs, *self._stand_ins(judged, overlay)]
        if away and self.member.settings.when_down == "hide":
            return [self._hidden(spec, away) for spec in found]
        return found

    async def answered(self) -> None:
        """Wait until the server has answered, or has failed to."""
        if self._listing is None:
            self._listing = asyncio.create_task(self._ask())
        await asyncio.wait({self._listing})

    async def close(self) -> None:
        """Nobody waits for it any more."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.wait({self._listing})
            if not self._listing.cancelled():
                self._listing.exception()
        await self.member.upstream.close()

    async def _listed(self) -> tuple[Sequence[Json] | None, str]:
        """What the server has, or why it cannot be told."""
        task = self._listing
        # What was agreed to is there at once; the server is asked meanwhile.
        patience = PATIENCE if self._waits and not (self._last is None and self.pins) else 0.0
        if task is None:
            task = asyncio.create_task(self._ask(), name=f"toolgate-mcp-{self.member.name}")
            self._listing = task
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            # Whoever hangs is waited for once.
            self._waits = False
            task.add_done_callback(lambda _task: self._later())
            return None, self.member.upstream.problem or "it has not answered yet"
        self._waits, self._listing = True, None
        try:
            return task.result(), ""
        except ToolgateError as error:
            return None, self.member.upstream.problem or error.message
        except asyncio.CancelledError:
            return None, "it is closed"

    async def _ask(self) -> Sequence[Json]:
        return await self.member.upstream.listed(Kind.TOOLS)

    async def _stored(self, away: str) -> Sequence[Mapping[str, Any]]:
        if self.pins is None:
            raise SourceUnavailable(f"The MCP server {self.member.name!r}: {away}")
        try:
            return list((await self._tenancy.pinned(self.member.name)).values())
        except StoreError as error:
            raise SourceUnavailable(error.message) from None

    async def _judged(
        self, definitions: Sequence[Mapping[str, Any]], overlay: Overlay, *, is_live: bool
    ) -> Judged:
        # Before anything is waited for: of two that come at once, one sees the other.
        self.words = tuple(str(one.get("name")) for one in definitions)
        house, pins = self._house(self.member.name), self.pins
        judged = await asyncio.to_thread(self._judge.judge, definitions, pins, overlay, house)
        if pins is not None or not is_live:
            return judged
        try:
            by = self._tenancy.by(_BY, _FIRST)
            await by.pin_tools(self.member.name, judged.fresh, first=True)
        except InvalidRequest:
            # Another node has seen it a moment before: what it saw holds.
            await self._tenancy.refresh()
        return await asyncio.to_thread(self._judge.judge, definitions, self.pins, overlay, house)

    def _stand_ins(self, judged: Judged, overlay: Overlay) -> list[ToolSpec]:
        taken = {spec.name: spec for spec in judged.specs}
        server, settings = self.member.name, self.member.settings
        found: list[ToolSpec] = []
        for kind in self._kinds:
            try:
                found.append(specs.stand_in(server, settings, kind, overlay, taken))
            except ValueError as error:
                self.problem += f"; its {kind} are left out: {error}"
        return found

    def _hidden(self, spec: ToolSpec, away: str) -> ToolSpec:
        own = str(spec.config.value().get("tool") or spec.name)
        kept = specs.held(
            self.member.name, self.member.settings, own, f"its server is away: {away}"
        )
        return kept if kept.name == spec.name else specs.renamed(kept, spec.name)

    def _overlaid(self) -> Overlay:
        """Read again when it has changed. Without the file nobody knows what the operator said."""
        if self._file is None:
            return NOTHING
        try:
            found = self._file.stat()
            stamp = found.st_mtime_ns, found.st_size
        except OSError:
            stamp = None
        if stamp is None or stamp != self._overlay[0]:
            self._overlay = stamp, overlays.read(self._file, self._file.name)
        return self._overlay[1]
