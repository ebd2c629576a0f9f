"""What other MCP servers have beside their tools, for who may have it.

In the catalog a tool stands for a server's resources, and another one for its prompts: who may call
it is shown them. So there is one gate, and nothing here decides.
"""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from toolgate.caller import Caller
from toolgate.catalog.snapshot import Snapshot
from toolgate.errors import ToolgateError
from toolgate.runtime import Runtime
from toolgate.server.mcp.allowance import Allowance
from toolgate.server.mcp.looked import letters, looked
from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault
from toolgate.spec.tool import ToolSpec
from toolgate.upstreams.upstream import Json, Kind, Upstream

log = logging.getLogger("toolgate.server")
# In `_meta`: which server is meant, where two have the same URI, or a prompt of the same name.
SERVER = "toolgate/server"
_PROVIDER = "mcp"
_GET_PROMPT = "get_prompt"
# A server that does not answer must not keep the lists of all others back.
PATIENCE = 5.0
# Of a list, so many letters are looked at while others wait.
_AT_ONCE = 20_000
# Of what was found in it, that many are told.
_MOST_TOLD = 3


class Share(NamedTuple):
    """What one caller has of one server."""

    server: str
    upstream: Upstream
    # Stands for it at the gate.
    spec: ToolSpec
    # Before the names of its prompts, as before those of its tools.
    prefix: str


class _Known(NamedTuple):
    server: str
    kind: str
    name: str


class Hears(Protocol):
    """A client that listens."""

    def changed(self, server: str, kind: Kind) -> None: ...


class Others:
    """The servers that the house has been given; `exposed`: whether clients have any of it."""

    def __init__(self, gate: Runtime, *, exposed: bool = True) -> None:
        self._gate = gate
        self._exposed = exposed
        self._known: tuple[Snapshot, tuple[_Known, ...]] | None = None
        # What those who listen may watch, by key.
        self.allowance = Allowance()
        # By server and kind: a list as it was sent, and what is shown of it.
        self._looked: dict[tuple[str, Kind], tuple[Sequence[Json], Sequence[Json]]] = {}
        # Those who want to know when a list has changed, and who tells it.
        self.hearings: set[Hears] = set()
        self._tellers: dict[str, Upstream] = {}

    @property
    def are_there(self) -> bool:
        """Whether there is any, be it away."""
        return self._exposed and bool(self._gate.upstreams)

    async def shares(self, caller: Caller, kind: Kind) -> list[Share]:
        """The servers whose resources, or prompts, the caller may have, by name."""
        upstreams = self._gate.upstreams
        if not self.are_there:
            return []
        listed = await self._gate.gate.listing(caller)
        found: list[Share] = []
        for one in self._stand_ins():
            upstream = upstreams.get(one.server)
            spec = _among(listed, one.name) if one.kind == kind else None
            if spec is not None and upstream is not None:
                found.append(Share(one.server, upstream, spec, _prefix(one)))
        return found

    def follow(self) -> None:
        """Hear of every server's changes from now on."""
        for name, upstream in self._gate.upstreams.items():
            if self._tellers.get(name) is not upstream:
                self._tellers[name] = upstream
                upstream.on_changed(lambda kind, name=name: self._changed(name, kind))

    async def offered(
        self, shares: Sequence[Share], kind: Kind, *, last: bool = False
    ) -> list[tuple[Share, Sequence[Json]]]:
        """Each server's list. One that is away leaves the others alone: it has none, or what it had
        `last`, so that nobody takes its place meanwhile.
        """
        lists = await asyncio.gather(*(self._listed(share, kind, last=last) for share in shares))
        return list(zip(shares, lists, strict=True))

    async def _listed(self, share: Share, kind: Kind, *, last: bool) -> Sequence[Json]:
        try:
            async with asyncio.timeout(PATIENCE):
                listed = await share.upstream.listed(kind)
                return await self._shown(share.server, kind, listed)
        except (ToolgateError, TimeoutError) as error:
            why = error.code if isinstance(error, ToolgateError) else "timeout"
            log.warning("the %s of %r could not be listed (%s)", kind.value, share.server, why)
            known = self._looked.get((share.server, kind)) if last else None
            return () if known is None else known[1]

    async def _shown(self, server: str, kind: Kind, listed: Sequence[Json]) -> Sequence[Json]:
        """Looked at once, as long as it stays the same list."""
        known = self._looked.get((server, kind))
        if known is not None and known[0] is listed:
            return known[1]
        if letters(listed) > _AT_ONCE:
            found = await asyncio.to_thread(looked, kind, listed)
        else:
            found = looked(kind, listed)
        if found.found:
            log.warning(
                "of the %s of %r some words are withheld (%d): %s",
                kind.value,
                server,
                len(found.found),
                "; ".join(found.found[:_MOST_TOLD]),
            )
        self._looked[server, kind] = listed, found.shown
        return found.shown

    def _changed(self, server: str, kind: Kind) -> None:
        for one in tuple(self.hearings):
            one.changed(server, kind)

    def _stand_ins(self) -> tuple[_Known, ...]:
        snapshot = self._gate.catalog.current
        if self._known is None or self._known[0] is not snapshot:
            specs = snapshot.specs.values()
            found = (_stands_for(one) for one in specs if one.provider == _PROVIDER)
            self._known = snapshot, tuple(sorted(one for one in found if one is not None))
        return self._known[1]


def said(value: Any, name: str) -> str:
    """A text that a server sent; empty where it sent something else."""
    found = cast("Json", value).get(name) if type(value) is dict else None
    return found if type(found) is str else ""


def named(share: Share, one: Json) -> Json:
    """As it is shown where two have it: with whose it is."""
    meta = one.get("_meta")
    told = cast("Json", meta) if type(meta) is dict else {}
    return one | {"_meta": told | {SERVER: share.server}}


def which(claims: Mapping[str, Share], of: str) -> Share:
    """The only one that has it. Else none: nobody takes the place of another by its name."""
    if len(claims) > 1:
        servers = sorted(claims)
        raise Fault(
            INVALID_PARAMS,
            f"{len(servers)} servers have it: {', '.join(servers)}. Say which: _meta: "
            f"{{{SERVER!r}: {servers[0]!r}}}.",
            {"of": of, "servers": servers},
        )
    return next(iter(claims.values()))


def _stands_for(spec: ToolSpec) -> _Known | None:
    if b'"kind"' not in spec.config.raw:
        return None
    config = spec.config.value()
    server, kind = said(config, "server"), said(config, "kind")
    return _Known(server, kind, spec.name) if server and kind else None


def _among(listed: tuple[ToolSpec, ...], name: str) -> ToolSpec | None:
    at = bisect_left(listed, name, key=_name)
    return listed[at] if at < len(listed) and listed[at].name == name else None


def _name(spec: ToolSpec) -> str:
    return spec.name


def _prefix(one: _Known) -> str:
    """From the name of what stands for them: it has the prefix of the server's tools."""
    named = one.name.removesuffix(f"_of_{one.server}")
    return named.removesuffix(_GET_PROMPT) if named.endswith(_GET_PROMPT) else ""
