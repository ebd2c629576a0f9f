"""The tools of one MCP server as a source of specs, down or not."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from toolgate.errors import (
    InvalidRequest,
    InvalidSpecs,
    SourceUnavailable,
    StoreError,
    ToolgateError,
)
from toolgate.sources.mcp import overlay as overlays
from toolgate.sources.mcp import specs
from toolgate.sources.mcp.judging import House, Judge, Judged
from toolgate.sources.mcp.overlay import NOTHING, Overlay
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.servers import Pins
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.member import Member
from toolgate.upstreams.review import SOURCE
from toolgate.upstreams.upstream import NOT_YET, Json, Kind

# How long a start waits for a server that nobody has seen before.
PATIENCE = 2.0
# How long its tools wait for what it has beside them.
_BESIDE = 1.0
# One that changes whenever it is asked has what it said last.
_TRIES = 3
# What a server may have beside tools, by the word of its capabilities, and where it is listed.
_LISTS: Mapping[str, tuple[Kind, ...]] = {
    "resources": (Kind.RESOURCES, Kind.TEMPLATES),
    "prompts": (Kind.PROMPTS,),
}
_SILENT = "it has not answered yet"
_BY = "toolgate"
_FIRST = "first seen"
_Stamp = tuple[int, int]


class _Has(NamedTuple):
    """What a server said that it has: its tools, and of what it has any beside them."""

    tools: Sequence[Json]
    kinds: tuple[str, ...]
    # Its member's, when it said so.
    changes: int


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
        asks: bool = True,
        agrees: bool = True,
    ) -> None:
        """`file` is its overlay; `later` is called when it has answered after all. `asks`: whether
        the server is asked at all, or only what was agreed to of it is looked up. `agrees`: whether
        what it has is agreed to when it is first seen.
        """
        self.name = f"{SOURCE}{member.name}"
        self.problem = ""
        self.member = member
        self.judged = Judged((), {}, {}, {}, ())
        # What its tools are called, agreed to or not.
        self.words: tuple[str, ...] = ()
        self._tenancy = tenancy
        self._house = house
        self._file = file
        self._later = later
        self._asks = asks
        self._agrees = agrees
        self._judge = Judge(member.name, member.settings)
        self._overlay: tuple[_Stamp | None, Overlay] = (None, NOTHING)
        self._listing: asyncio.Task[_Has] | None = None
        self._last: Sequence[Mapping[str, Any]] | None = None
        self._kinds: tuple[str, ...] = ()
        self._waits = True

    @property
    def pins(self) -> Pins | None:
        """What is agreed to of it; `None` where nobody has seen it before."""
        return self._tenancy.world.servers.pins.get(self.member.name)

    async def load(self) -> Sequence[ToolSpec]:
        """Its specs: as it tells them, as it told them last, or as they were agreed to."""
        overlay, wrong = await asyncio.to_thread(self._overlaid)
        live, away = await self._listed()
        self.problem = away
        definitions = self._last if live is None else live.tools
        if definitions is None:
            definitions = await self._stored(away)
        self._last = definitions
        try:
            judged = await self._judged(definitions, overlay, is_live=live is not None)
        except StoreError as error:
            raise SourceUnavailable(error.message) from None
        self.judged = judged
        self.member.held = judged.closed
        self.member.is_checked = live is not None and live.changes == self.member.changes
        if live is not None:
            self._kinds = live.kinds
        told = self._with_remedy(away) if away else ""
        self.problem = "; ".join(filter(None, (wrong, told, judged.problem)))
        found = [*judged.specs, *self._stand_ins(judged, overlay)]
        if live is None and self._asks and self.member.settings.when_down == "hide":
            return [self._hidden(spec, away or _SILENT) for spec in found]
        return found

    async def answered(self) -> None:
        """Wait until the server has answered, or has failed to."""
        if self._listing is None:
            self._listing = asyncio.create_task(self._ask())
        await asyncio.wait({self._listing})

    @property
    def has_answered(self) -> bool:
        """Whether it has said what it has, to whoever asked last."""
        task = self._listing
        return (
            task is not None and task.done() and not task.cancelled() and task.exception() is None
        )

    async def close(self) -> None:
        """Nobody waits for it any more."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.wait({self._listing})
            if not self._listing.cancelled():
                self._listing.exception()
        await self.member.upstream.close()

    async def _listed(self) -> tuple[_Has | None, str]:
        """What the server has, or why it cannot be told. One that is on its way to what was agreed
        to of it is no problem yet.
        """
        if not self._asks:
            return None, ""
        task = self._listing
        # What was agreed to is there at once; the server is asked meanwhile.
        is_on_its_way = self._last is None and bool(self.pins)
        patience = PATIENCE if self._waits and not is_on_its_way else 0.0
        if task is None:
            task = asyncio.create_task(self._ask(), name=f"toolgate-mcp-{self.member.name}")
            self._listing = task
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            # Whoever hangs is waited for once.
            self._waits = False
            task.add_done_callback(lambda _task: self._later())
            problem = self.member.upstream.problem
            if problem and problem != NOT_YET:
                return None, problem
            return None, "" if is_on_its_way else _SILENT
        self._waits, self._listing = True, None
        try:
            return task.result(), ""
        except ToolgateError as error:
            return None, self.member.upstream.problem or error.message
        except asyncio.CancelledError:
            return None, "it is closed"

    async def _ask(self) -> _Has:
        upstream = self.member.upstream
        tools: Sequence[Json] = ()
        for _ in range(_TRIES):
            changes = self.member.changes
            tools = await upstream.listed(Kind.TOOLS)
            # It may have come, or become another, meanwhile.
            if changes == self.member.changes:
                break
        changes = self.member.changes
        kinds = [kind for kind in _LISTS if kind in upstream.capabilities]
        has = await asyncio.gather(*map(self._has_any, kinds))
        there = tuple(kind for kind, is_there in zip(kinds, has, strict=True) if is_there)
        return _Has(tools, there, changes)

    async def _has_any(self, kind: str) -> bool:
        """Whether it has any of what it says it can have. Who cannot tell in time may have."""
        upstream = self.member.upstream
        how: object = upstream.capabilities[kind]
        if isinstance(how, dict) and cast("Json", how).get("subscribe"):
            return True
        try:
            async with asyncio.timeout(_BESIDE):
                for one in _LISTS[kind]:
                    if await upstream.listed(one):
                        return True
        except (ToolgateError, TimeoutError):
            return True
        return False

    async def _stored(self, away: str) -> Sequence[Mapping[str, Any]]:
        if self.pins is None:
            if not self._asks:
                return ()
            raise SourceUnavailable(self._never_seen(away))
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
        judge = partial(self._judge.judge, overlay=overlay, house=house, is_live=is_live)
        judged = await asyncio.to_thread(judge, definitions, pins)
        if pins is not None or not is_live or not self._agrees:
            return judged
        try:
            by = self._tenancy.by(_BY, _FIRST)
            await by.pin_tools(self.member.name, judged.fresh, first=True)
        except InvalidRequest:
            # Another node has seen it a moment before: what it saw holds.
            await self._tenancy.refresh()
        return await asyncio.to_thread(judge, definitions, self.pins)

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

    def _never_seen(self, away: str) -> str:
        if away == _SILENT:
            away = f"it has not answered within {PATIENCE:g} s; its tools come when it does"
        return self._with_remedy(away)

    def _with_remedy(self, away: str) -> str:
        """Why it is away, and what to do. What a program cannot have is told with what to write."""
        member, todo = self.member, ""
        if member.settings.url:
            todo = " Check its url and its headers, and that it runs."
        elif member.upstream.last_words:
            todo = f" Its last lines: toolgate servers show {member.name}"
        return f"{away.removesuffix('.')}.{todo}"

    def _overlaid(self) -> tuple[Overlay, str]:
        """Read again when it has changed, and what is wrong with it now.

        Without the file nobody knows what the operator said: what could be read last holds, and
        where nothing could, it is an error.
        """
        if self._file is None:
            return NOTHING, ""
        try:
            found = self._file.stat()
            stamp = found.st_mtime_ns, found.st_size
        except OSError:
            stamp = None
        last = self._overlay
        if stamp is None or stamp != last[0]:
            try:
                self._overlay = stamp, overlays.read(self._file, self._file.name)
            except InvalidSpecs as error:
                wrong = f"its overlay cannot be used: {' '.join(map(str, error.problems))}"
                if last[0] is None:
                    raise SourceUnavailable(f"{wrong} None of its tools are offered.") from None
                return last[1], f"{wrong} What could be read of it last holds"
        return self._overlay[1], ""
