"""What a key may call and lacks, asked of its server and kept for what needs no `await`."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from toolgate.caller import NO_CONTEXT, Caller
from toolgate.client.identity import sent_context
from toolgate.client.reading import Pages, read, read_spec, understood
from toolgate.client.wire import Wire
from toolgate.errors import InvalidRequest, ToolgateError
from toolgate.sight import WAITS, Lacking, Seen, Unavailable, View
from toolgate.spec.tool import ToolSpec

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
# How old a list that nobody asked for anew can be.
PERIOD = 15.0
_TOOLS, _LACKING = "/v1/tools", "/v1/unavailable"
# As long as a page can be: a tag tells of one page.
_PAGE = {_TOOLS: 100_000, _LACKING: 10_000}
# A tenth of a millisecond each, the first time.
_SLICE = 100


class Listed(NamedTuple):
    """A list, and of which tools each call waits for somebody."""

    specs: tuple[ToolSpec, ...]
    people: tuple[str, ...]


class Looking:
    """Asks, and keeps what it was told of the key's own caller."""

    def __init__(self, wire: Wire, ask: Ask) -> None:
        self._wire = wire
        self._ask = ask
        self._specs: dict[str, ToolSpec] = {}
        self._tags: dict[str, str] = {}
        self.kept: Seen | None = None

    async def listed(self, caller: Caller) -> Listed:
        """What the caller may call."""
        pages = await self._pages(_TOOLS, caller)
        with understood():
            specs = await self._read([one for page in pages for one in page["tools"]])
            people = read([name for page in pages for name in page["people"]], list[str])
        return Listed(tuple(specs), tuple(people))

    async def look(self, caller: Caller) -> Seen:
        """What the caller may call, and what it lacks."""
        listed = await self.listed(caller)
        pages = await self._pages(_LACKING, caller)
        with understood():
            told = [one for page in pages for one in page["unavailable"]]
            specs = await self._read([one["definition"] for one in told])
            lacking = [
                Lacking(spec, read(one, Unavailable)) for spec, one in zip(specs, told, strict=True)
            ]
        seen = Seen(listed.specs, lacking, listed.people)
        if is_plain(caller):
            self.kept = seen
            # Compiled once: of the next list, only what is new.
            known = [*listed.specs, *(one.spec for one in lacking)]
            self._specs = {spec.fingerprint: spec for spec in known}
        return seen

    async def keep_looking(self, caller: Caller) -> None:
        """Again and again. What was told last stays while the server is away."""
        while True:
            await asyncio.sleep(PERIOD)
            with suppress(ToolgateError):
                if await self._has_changed():
                    await self.look(caller)

    async def _has_changed(self) -> bool:
        """Whether a list is another one than when this was last asked."""
        is_new = False
        for path in (_TOOLS, _LACKING):
            known = {"If-None-Match": self._tags[path]} if path in self._tags else None
            query = {"limit": _PAGE[path]}
            reply = await self._wire.ask("GET", path, query=query, headers=known)
            if reply.status != 304:
                is_new = True
                self._tags[path] = reply.headers.get("ETag", "")
        return is_new

    async def _pages(self, path: str, caller: Caller) -> list[dict[str, Any]]:
        query = {**sent_query(caller), "limit": _PAGE[path]}
        pages, known = [await self._ask(path, query)], Pages()
        while cursor := known.following(pages[-1]):
            pages.append(await self._ask(path, {**query, "cursor": cursor}))
        return pages

    async def _read(self, told: list[dict[str, Any]]) -> list[ToolSpec]:
        """A long list is read in slices, so that nothing else here waits for the whole of it."""
        specs: list[ToolSpec] = []
        for start in range(0, len(told), _SLICE):
            specs += [self._spec(one) for one in told[start : start + _SLICE]]
            await asyncio.sleep(0)
        return specs

    def _spec(self, told: dict[str, Any]) -> ToolSpec:
        known = self._specs.get(told.get("fingerprint", ""))
        return known if known is not None else read_spec(told, self._wire.url)


class Outside:
    """A server's gate, for one caller."""

    def __init__(self, looking: Looking, caller: Caller) -> None:
        self._looking = looking
        self._caller = caller

    def at_once(self) -> View:
        """The list that is kept; a session or a context can have another one."""
        kept = self._looking.kept
        if kept is None or not is_plain(self._caller):
            raise InvalidRequest(WAITS)
        return kept

    async def look(self) -> View:
        """Ask now."""
        return await self._looking.look(self._caller)

    async def meant(self, tool: str) -> str:
        """The server knows both names."""
        return tool


def is_plain(caller: Caller) -> bool:
    """Whether it is the key's own caller, in no session and no context."""
    return not caller.session and caller.context == NO_CONTEXT


def sent_query(caller: Caller) -> dict[str, Any]:
    """Session and context, as fields of a query."""
    context = None
    if caller.context != NO_CONTEXT:
        context = orjson.dumps(sent_context(caller.context)).decode()
    return {"session": caller.session or None, "context": context}
