"""`completion/complete`: what an argument of a prompt or of a template can be."""

import asyncio
from typing import Any

from toolgate.errors import ToolgateError
from toolgate.server.mcp import own
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.others import PATIENCE, Share
from toolgate.server.mcp.prompts import Prompts
from toolgate.server.mcp.resources import Resources
from toolgate.server.mcp.rpc import Params, mapping
from toolgate.spec.names import is_of_house
from toolgate.upstreams.upstream import Json

_METHOD = "completion/complete"


class Completion:
    """Of our own templates, the caller's own ids; of all else, what its server says."""

    def __init__(self, resources: Resources, prompts: Prompts) -> None:
        self._resources = resources
        self._prompts = prompts

    async def complete(self, exchange: Exchange) -> dict[str, Any]:
        """Nothing, where there is nobody who would know: a client goes on typing."""
        ref = mapping(exchange.params, "ref")
        uri, name = ref.get("uri"), ref.get("name")
        mapping(exchange.params, "argument")
        if type(uri) is str and is_of_house(uri):
            return _values(_own(exchange, uri))
        if type(uri) is str:
            share = await self._resources.place(exchange, uri, is_template=True)
            return await _asked(exchange, share, ref, {"uri": uri})
        if type(name) is str:
            found = await self._prompts.find(exchange, name)
            if found is not None:
                args: Json = {"name": found.name, "arguments": {}}
                return await _asked(exchange, found.share, {**ref, "name": found.name}, args)
        return _values([])


async def _asked(
    exchange: Exchange, share: Share | None, ref: Params, args: Json
) -> dict[str, Any]:
    if share is None or "completions" not in share.upstream.capabilities:
        return _values([])
    grant = await exchange.gate.gate.decide(exchange.peer.caller, share.spec.name, args)
    if grant.needs_a_person:
        # What a person has to agree to is not told letter by letter before.
        return _values([])
    given = exchange.params
    params: Json = {"ref": ref, "argument": given["argument"]}
    if type(given.get("context")) is dict:
        params["context"] = given["context"]
    try:
        async with asyncio.timeout(PATIENCE):
            told = await share.upstream.request(_METHOD, params, seconds=PATIENCE)
    except (ToolgateError, TimeoutError):
        return _values([])
    found: object = told.get("completion")
    return {"completion": found} if type(found) is dict else _values([])


def _own(exchange: Exchange, uri: str) -> list[str]:
    given = mapping(exchange.params, "argument").get("value")
    typed = given if type(given) is str else ""
    values = [one.own(exchange) for one in own.OWN if uri == one.template]
    return [one for one in values if one and one.startswith(typed)]


def _values(values: list[str]) -> dict[str, Any]:
    return {"completion": {"values": values, "hasMore": False}}
