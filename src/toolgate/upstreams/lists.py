"""What a server has: lists, read page by page and kept until they change."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson

from toolgate import clock
from toolgate.protocol import METHOD_NOT_FOUND
from toolgate.upstreams import headers
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.message import FaultError, Json
from toolgate.upstreams.upstream import Kind

_MOST_PAGES = 1_000
_MOST_ITEMS = 50_000
# All pages of one list together.
_MOST_BYTES = 64 * 1024 * 1024
_MOST_SECONDS = 120.0
# A server that says nothing about changes is asked again after this.
_KEPT = 60.0
# Also one that says when they change may be replaced by one that does not.
_SHORTEST, _LONGEST = 1.0, 300.0
# Changes are told so often at most: a server that shouts is heard once.
_QUIET = 0.2

_METHODS: Mapping[Kind, tuple[str, str, str]] = {
    Kind.TOOLS: ("tools/list", "tools", "tools"),
    Kind.RESOURCES: ("resources/list", "resources", "resources"),
    Kind.TEMPLATES: ("resources/templates/list", "resourceTemplates", "resources"),
    Kind.PROMPTS: ("prompts/list", "prompts", "prompts"),
}
CHANGED: Mapping[str, tuple[Kind, ...]] = {
    "notifications/tools/list_changed": (Kind.TOOLS,),
    "notifications/prompts/list_changed": (Kind.PROMPTS,),
    "notifications/resources/list_changed": (Kind.RESOURCES, Kind.TEMPLATES),
}
Ask = Callable[[str, Json], Awaitable[Json]]


class _Kept(msgspec.Struct, frozen=True):
    items: tuple[Json, ...]
    until_ns: int


class Lists:
    """The lists of one server, and who wants to hear that they have changed."""

    def __init__(self) -> None:
        self._kept: dict[Kind, _Kept] = {}
        self._fetching: dict[Kind, asyncio.Task[tuple[Json, ...]]] = {}
        self._told: list[Callable[[Kind], object]] = []
        self._waiting: set[Kind] = set()
        self._timer: asyncio.TimerHandle | None = None
        # Counts changes: a list that was fetched across one is not kept.
        self._changes = 0

    def on_changed(self, told: Callable[[Kind], object]) -> None:
        """Told of each change, soon after it."""
        self._told.append(told)

    async def listed(
        self, kind: Kind, ask: Ask, capabilities: Mapping[str, Any], *, is_modern: bool
    ) -> Sequence[Json]:
        """One list, whole. Who asks while it is fetched waits for that."""
        kept = self._kept.get(kind)
        if kept is not None and clock.monotonic_ns() < kept.until_ns:
            return kept.items
        if capabilities.get(_METHODS[kind][2]) is None:
            return ()
        task = self._fetching.get(kind)
        if task is None:
            task = asyncio.create_task(self._fetched(kind, ask, capabilities, is_modern=is_modern))
            self._fetching[kind] = task
            task.add_done_callback(lambda done: self._over(kind, done))
        return await asyncio.shield(task)

    async def _fetched(
        self, kind: Kind, ask: Ask, capabilities: Mapping[str, Any], *, is_modern: bool
    ) -> tuple[Json, ...]:
        changes = self._changes
        whole = asyncio.timeout(_MOST_SECONDS)
        try:
            async with whole:
                items, ttl = await _pages(kind, ask)
        except TimeoutError:
            if not whole.expired():
                raise
            raise AwayError(f"its answer to {_METHODS[kind][0]} takes too long.") from None
        if is_modern and kind is Kind.TOOLS:
            # The protocol has tools left out that say wrongly what goes into headers.
            items = [one for one in items if headers.repeated(one.get("inputSchema")) is not None]
        found = tuple(items)
        has = capabilities.get(_METHODS[kind][2])
        tells = type(has) is dict and cast("Json", has).get("listChanged") is True
        if tells and not ttl:
            # It says when, so nothing has to be guessed.
            ttl = _LONGEST
        elif ttl is None:
            ttl = _KEPT
        ttl = max(ttl, _SHORTEST)
        if changes == self._changes:
            self._kept[kind] = _Kept(found, clock.monotonic_ns() + int(ttl * 1e9))
        return found

    def _over(self, kind: Kind, task: "asyncio.Task[tuple[Json, ...]]") -> None:
        if self._fetching.get(kind) is task:
            del self._fetching[kind]
        # Whoever waited may have gone before it failed.
        if not task.cancelled():
            task.exception()

    def change(self, *kinds: Kind) -> None:
        """These are not what they were. They are fetched anew when they are wanted."""
        self._changes += 1
        for kind in kinds:
            self._kept.pop(kind, None)
            self._fetching.pop(kind, None)
        self._waiting.update(kinds)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_QUIET, self._tell)

    def tell_now(self) -> None:
        """Tell what waits to be told."""
        if self._timer is not None:
            self._timer.cancel()
        self._tell()

    def close(self) -> None:
        """Nothing is told any more."""
        self._told.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._fetching.values():
            task.cancel()

    def _tell(self) -> None:
        self._timer = None
        kinds, self._waiting = self._waiting, set()
        for told in tuple(self._told):
            for kind in Kind:
                if kind in kinds:
                    told(kind)


async def _pages(kind: Kind, ask: Ask) -> tuple[list[Json], float | None]:
    """All pages, and for how many seconds the server lets them be kept."""
    method, name, _ = _METHODS[kind]
    items: list[Json] = []
    seen: set[str] = set()
    ttl: float | None = None
    params: Json = {}
    size = 0
    while True:
        try:
            page = await ask(method, params)
        except FaultError as error:
            if error.fault.code == METHOD_NOT_FOUND and not seen:
                return [], None
            raise
        size += len(orjson.dumps(page))
        if size > _MOST_BYTES:
            raise AwayError(f"its answer to {method} has more than {_MOST_BYTES:,} bytes.")
        given = page.get(name)
        if type(given) is not list:
            raise AwayError(f"its answer to {method} is no list.")
        items += [cast("Json", one) for one in cast("list[Any]", given) if type(one) is dict]
        lasts = page.get("ttlMs")
        if (type(lasts) is int or type(lasts) is float) and lasts >= 0:
            ttl = min(_LONGEST, lasts / 1_000, _LONGEST if ttl is None else ttl)
        cursor = page.get("nextCursor")
        if type(cursor) is not str:
            return items, ttl
        if cursor in seen or len(seen) >= _MOST_PAGES or len(items) > _MOST_ITEMS:
            raise AwayError(f"its answer to {method} has no end.")
        seen.add(cursor)
        params = {"cursor": cursor}
