"""Prompts: the house has none of its own; those of other servers, under the names of their tools.

What stands before the names of a server's tools stands before those of its prompts.
"""

from typing import Any, NamedTuple

from toolgate.call import Output
from toolgate.errors import ToolError
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.label import UNTRUSTED, labelled
from toolgate.server.mcp.others import SERVER, Others, Share, named, said, which
from toolgate.server.mcp.paging import Item, paged
from toolgate.server.mcp.resources import failed, unpacked, whole
from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault, mapping, text
from toolgate.server.mcp.tools import Calls
from toolgate.spec.names import kept
from toolgate.upstreams.upstream import Json, Kind


class Prompt(NamedTuple):
    """One of them: whose it is, its name there, and all that is told of it here."""

    share: Share
    name: str
    shown: Json


class Prompts:
    """What can be had, and by whom."""

    def __init__(self, calls: Calls, others: Others) -> None:
        self._calls = calls
        self._others = others

    async def listed(self, exchange: Exchange) -> dict[str, Any]:
        """A page of them, by server and name."""
        items: list[Item] = []
        for name, claims in (await self._all(exchange)).items():
            for one in claims:
                shown = one.shown if len(claims) == 1 else named(one.share, one.shown)
                items.append(Item(f"{one.share.server}\0{name}", shown))
        items.sort(key=lambda item: item.key)
        return paged("prompts", items, exchange.params)

    async def get(self, exchange: Exchange) -> dict[str, Any]:
        """One, with its arguments filled in by its server."""
        name, given = text(exchange.params, "name"), mapping(exchange.params, "arguments")
        found = await self.find(exchange, name)
        if found is None:
            raise Fault(
                INVALID_PARAMS, "There is no such prompt; prompts/list names them.", {"name": name}
            )

        async def passed(exchange: Exchange, output: Output) -> dict[str, Any]:
            error = output.error
            if error is not None and error.code == ToolError.code:
                raise Fault(INVALID_PARAMS, error.message, {"name": name, UNTRUSTED: True})
            if error is not None:
                raise failed(output, name)
            told = await unpacked(exchange, name, output)
            return labelled(whole(told, "messages", "description"), output)

        args = {"name": found.name, "arguments": given}
        return await self._calls.standing(exchange, found.share.spec, args, passed)

    async def find(self, exchange: Exchange, name: str) -> Prompt | None:
        """A prompt of that name, that this caller may have; which of two, the caller has to say."""
        claims = (await self._all(exchange, last=True)).get(name, ())
        found = {one.share.server: one for one in claims}
        if SERVER in exchange.meta:
            return found.get(str(exchange.meta[SERVER]))
        if not found:
            return None
        return found[which({one: found[one].share for one in found}, name).server]

    async def _all(self, exchange: Exchange, *, last: bool = False) -> dict[str, list[Prompt]]:
        """By name, and of each server once."""
        shares = await self._others.shares(exchange.peer.caller, Kind.PROMPTS)
        found: dict[str, dict[str, Prompt]] = {}
        for share, listed in await self._others.offered(shares, Kind.PROMPTS, last=last):
            for one in listed:
                own = said(one, "name")
                name = f"{share.prefix}{own}"
                if own and not kept(name, "mcp", share.server):
                    shown = one if name == own else {**one, "name": name}
                    of_name = found.setdefault(name, {})
                    of_name.setdefault(share.server, Prompt(share, own, shown))
        return {name: list(claims.values()) for name, claims in found.items()}
