"""Resources: the house's own, pure tools that say where they can be read, and those of others.

All of it under the gate: what a caller may not call it cannot read either.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import orjson

from toolgate.call import Output
from toolgate.errors import ToolError
from toolgate.server.mcp import own, revision
from toolgate.server.mcp.answers import is_content, not_ours
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.label import UNTRUSTED, disclaimed, labelled, theirs
from toolgate.server.mcp.others import SERVER, Others, Share, named, said, which
from toolgate.server.mcp.own import missing
from toolgate.server.mcp.paging import Item, paged
from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault, Params, text
from toolgate.server.mcp.template import MOST, fits, matched
from toolgate.server.mcp.tools import Calls
from toolgate.spec.names import is_of_house
from toolgate.spec.tool import Resource, ToolSpec
from toolgate.upstreams.upstream import Json, Kind

# Of another server's resource, which nobody can read in pieces.
_MOST_BYTES = 16 * 1024 * 1024


class Resources:
    """What can be read, and by whom.

    `runs`: whether anything may run to be read. Without it only what the house says of itself is
    there.
    """

    def __init__(self, calls: Calls, others: Others, *, runs: bool = True) -> None:
        self._calls = calls
        self._others = others
        self._runs = runs

    async def listed(self, exchange: Exchange) -> dict[str, Any]:
        """A page of what can be read as it stands."""
        mine = _first(own.listed(exchange))
        for spec, resource in await self._readable(exchange):
            if not resource.names:
                shown = {"uri": resource.uri, **_shown(spec, resource)}
                mine.append(Item(f"\0~{spec.name}", shown))
        items = await self._items(exchange, Kind.RESOURCES, "uri", mine)
        return paged("resources", items, exchange.params)

    async def templates(self, exchange: Exchange) -> dict[str, Any]:
        """A page of what can be read once the names in it are filled in."""
        mine = _first(own.templates(runs=self._runs))
        for spec, resource in await self._readable(exchange):
            if resource.names:
                shown = {"uriTemplate": resource.uri, **_shown(spec, resource)}
                mine.append(Item(f"\0~{spec.name}", shown))
        items = await self._items(exchange, Kind.TEMPLATES, "uriTemplate", mine)
        return paged("resourceTemplates", items, exchange.params)

    async def read(self, exchange: Exchange) -> dict[str, Any]:
        """The contents of one; what the caller may not see is not there."""
        uri = _uri(exchange.params)
        found = await own.read(exchange, uri, runs=self._runs)
        if found is not None:
            return found
        for spec, resource in await self._readable(exchange):
            args = matched(resource, uri)
            if args is not None:
                finish = partial(_contents, uri, resource)
                return await self._calls.standing(exchange, spec, dict(args), finish)
        share = await self.place(exchange, uri)
        if share is None:
            raise missing(exchange, uri)
        passed = partial(_passed, uri)
        return await self._calls.standing(exchange, share.spec, {"uri": uri}, passed)

    async def check(self, exchange: Exchange) -> tuple[str, Share | None]:
        """A URI that this caller can read, and the server that has it, where we do not."""
        uri = _uri(exchange.params)
        if uri in own.uris(exchange):
            return uri, None
        readable = await self._readable(exchange)
        if any(matched(resource, uri) is not None for _spec, resource in readable):
            return uri, None
        share = await self.place(exchange, uri)
        if share is None:
            raise missing(exchange, uri)
        return uri, share

    async def place(
        self, exchange: Exchange, uri: str, *, is_template: bool = False
    ) -> Share | None:
        """The server that has it: which lists it, or whose template it fits; else the only one
        that there is for this caller. Which of two is meant has to be said.
        """
        # No other server's resource can stand under what is the house's.
        if is_of_house(uri) or len(uri) > MOST:
            return None
        shares = await self._others.shares(exchange.peer.caller, Kind.RESOURCES)
        if SERVER in exchange.meta:
            return next((one for one in shares if one.server == exchange.meta[SERVER]), None)
        found: dict[str, Share] = {}
        if not is_template:
            for share, listed in await self._others.offered(shares, Kind.RESOURCES, last=True):
                if any(said(one, "uri") == uri for one in listed):
                    found[share.server] = share
        for share, listed in await self._others.offered(shares, Kind.TEMPLATES, last=True):
            if any(fits(said(one, "uriTemplate"), uri) for one in listed):
                found[share.server] = share
        if found:
            return which(found, uri)
        return shares[0] if len(shares) == 1 else None

    async def _readable(self, exchange: Exchange) -> list[tuple[ToolSpec, Resource]]:
        if not self._runs:
            return []
        specs = await exchange.gate.gate.listing(exchange.peer.caller)
        return [(spec, spec.resource) for spec in specs if spec.resource is not None]

    async def _items(
        self, exchange: Exchange, kind: Kind, name: str, mine: Sequence[Item]
    ) -> list[Item]:
        """Ours, then those of others by server and URI. Of one that two have, each says whose."""
        shares = await self._others.shares(exchange.peer.caller, Kind.RESOURCES)
        ours = {one.shown[name] for one in mine}
        items = list(mine)
        found: dict[str, list[tuple[Share, Json]]] = {}
        for share, listed in await self._others.offered(shares, kind):
            for uri, one in {said(one, name): one for one in reversed(listed)}.items():
                if uri and not is_of_house(uri) and uri not in ours:
                    found.setdefault(uri, []).append((share, one))
        for uri, claims in found.items():
            for share, one in claims:
                shown = one if len(claims) == 1 else named(share, one)
                items.append(Item(f"{share.server}\0{uri}", shown))
        return sorted(items, key=lambda item: item.key)


def _first(shown: Sequence[Json]) -> list[Item]:
    """In this order, before all others."""
    return [Item(f"\0{number}", one) for number, one in enumerate(shown)]


def _uri(params: Params) -> str:
    uri = text(params, "uri")
    if len(uri) > MOST:
        raise Fault(INVALID_PARAMS, f"'uri' has at most {MOST:,} characters.")
    return uri


def _shown(spec: ToolSpec, resource: Resource) -> dict[str, Any]:
    shown = {"name": spec.name, "title": spec.title, "description": spec.description}
    return shown | ({"mimeType": resource.media_type} if resource.media_type else {})


async def _contents(
    uri: str, resource: Resource, _exchange: Exchange, output: Output
) -> dict[str, Any]:
    """What one of our own tools returned."""
    if output.error is not None:
        raise failed(output, uri)
    data: Any = output.data
    if is_content(data):
        told = not_ours(output) if output.untrusted else data
        blocks = [block for block in told["content"] if block["type"] == "resource"]
        held = [block.get("resource") for block in blocks]
        if not all(map(_is_held, held)):
            raise Fault(
                INVALID_PARAMS,
                "The tool behind it answered with a resource that holds nothing, or has no URI.",
                {"uri": uri},
            )
        if held:
            return labelled({"contents": held}, output)
    raw = data if type(data) is str else orjson.dumps(data).decode()
    kind = resource.media_type or ("text/plain" if type(data) is str else own.JSON)
    return labelled({"contents": [{"uri": uri, "mimeType": kind, "text": raw}]}, output)


def _is_held(contents: Any) -> bool:
    """Whether there is something to read. A server can send a block without it."""
    if type(contents) is not dict:
        return False
    told = cast("Json", contents)
    return type(told.get("uri")) is str and ("text" in told or "blob" in told)


async def _passed(uri: str, exchange: Exchange, output: Output) -> dict[str, Any]:
    """What another server sent, as it sent it."""
    if output.error is not None:
        if output.error.code == ToolError.code:
            # Its own word: to that server it is not there, or not to be had.
            raise missing(exchange, uri, output.error.message)
        raise failed(output, uri)
    return labelled(whole(await unpacked(exchange, uri, output), "contents"), output)


async def unpacked(exchange: Exchange, of: str, output: Output) -> Any:
    """The result; also where it was too large to be answered at once."""
    data: Any = output.data
    if type(data) is dict and "read_with" in data:
        # Only ours: a provider takes the word out of what a server sends.
        reference = cast("dict[str, Any]", data).get("reference")
        if type(reference) is not str:
            raise missing(exchange, of)
        _kind, raw = await own.output(exchange, of, reference, _MOST_BYTES)
        return orjson.loads(raw)
    return cast("Any", data)


def whole(data: Any, *names: str) -> dict[str, Any]:
    """What belongs into our own result: what the server says of itself there does not."""
    sent = cast("Json", data) if type(data) is dict else {}
    if type(sent.get(names[0])) is not list:
        raise Fault(INVALID_PARAMS, "The server behind it sent something else than was asked for.")
    found = {name: sent[name] for name in names if name in sent}
    found[names[0]] = [disclaimed(one) for one in sent[names[0]]]
    meta = sent.get("_meta")
    if type(meta) is dict:
        told = theirs(cast("Json", meta))
        told.pop(revision.SERVER, None)
        if told:
            found["_meta"] = told
    return found


def failed(output: Output, of: str) -> Fault:
    """A call without a result, where only a fault can tell it."""
    assert output.error is not None  # noqa: S101  its callers have looked
    told: dict[str, Any] = {"code": output.error.code, "uri": of}
    approval = output.error.details.get("approval_id")
    if approval is not None:
        told["approval_id"] = approval
    if output.untrusted:
        told[UNTRUSTED] = True
    return Fault(INVALID_PARAMS, output.to_human(), told)
