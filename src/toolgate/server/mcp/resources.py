"""Resources: who has which tools, large outputs, and pure tools that say where they can be read.

All of it under the gate: what a caller may not call it cannot read either.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from toolgate.call import Output
from toolgate.errors import CallRefused, ToolgateError
from toolgate.server.mcp.answers import is_content
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.line import ToolLine
from toolgate.server.mcp.rpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, Fault, mapping, text
from toolgate.spec.export import export
from toolgate.spec.tool import Resource, ToolSpec

_JSON = "application/json"
_OUTPUTS = "toolgate://outputs/"
_READ_OUTPUT = "read_output"
# More than this is read in pieces, by the tool.
_MOST_OUTPUT = 1_000_000
_PIECE = 100_000
_MOST_ID = 200


class _Own(NamedTuple):
    """One of the house's own: whose id stands in it, and what it tells."""

    template: str
    name: str
    about: str
    own: Callable[[Exchange], str]
    read: Callable[[Exchange], Awaitable[Any]]


async def _available(exchange: Exchange) -> Any:
    gate, caller = exchange.gate.gate, exchange.peer.caller
    lacking = [spec for spec, _verdict in await gate.unavailable(caller)]
    specs = sorted([*await gate.listing(caller), *lacking], key=lambda spec: spec.name)
    return {"tenant": caller.tenant, "tools": [_brief(spec) for spec in specs]}


async def _enabled(exchange: Exchange) -> Any:
    caller = exchange.peer.caller
    specs = await exchange.gate.discover(caller)
    return {"agent": caller.agent, "tools": export(specs, "mcp")}


async def _unavailable(exchange: Exchange) -> Any:
    caller = exchange.peer.caller
    found = await exchange.gate.gate.unavailable(caller)
    return {
        "agent": caller.agent,
        "tools": [
            _brief(spec) | {"phase": verdict.phase, "reason": verdict.reason}
            for spec, verdict in found
        ],
    }


def _brief(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description}


def _tenant(exchange: Exchange) -> str:
    return exchange.peer.caller.tenant


def _agent(exchange: Exchange) -> str:
    return exchange.peer.caller.agent


OWN = (
    _Own(
        "focal://tools/tenant/{id}/available",
        "tools-available",
        "The tools that the tenant has, whatever its agents may do.",
        _tenant,
        _available,
    ),
    _Own(
        "focal://tools/agent/{id}/enabled",
        "tools-enabled",
        "The tools that the agent may call.",
        _agent,
        _enabled,
    ),
    _Own(
        "focal://tools/agent/{id}/unavailable",
        "tools-unavailable",
        "The tools that the tenant has and the agent lacks, and why.",
        _agent,
        _unavailable,
    ),
)


async def listed(exchange: Exchange) -> list[dict[str, Any]]:
    """What can be read as it stands."""
    found: list[dict[str, Any]] = [
        {
            "uri": one.template.replace("{id}", one.own(exchange)),
            "name": one.name,
            "description": one.about,
            "mimeType": _JSON,
        }
        for one in OWN
        if one.own(exchange)
    ]
    for spec, resource in await _readable(exchange):
        if not resource.names:
            found.append({"uri": resource.uri, **_shown(spec, resource)})
    return found


async def templates(exchange: Exchange) -> list[dict[str, Any]]:
    """What can be read once the names in it are filled in."""
    found: list[dict[str, Any]] = [
        {
            "uriTemplate": one.template,
            "name": one.name,
            "description": one.about,
            "mimeType": _JSON,
        }
        for one in OWN
    ]
    found.append(
        {
            "uriTemplate": f"{_OUTPUTS}{{reference}}",
            "name": "output",
            "description": "An output that was too large to be answered at once.",
        }
    )
    for spec, resource in await _readable(exchange):
        if resource.names:
            found.append({"uriTemplate": resource.uri, **_shown(spec, resource)})
    return found


async def read(exchange: Exchange) -> dict[str, Any]:
    """The contents of one; what the caller may not see is not there."""
    uri = text(exchange.params, "uri")
    for one in OWN:
        own = one.own(exchange)
        if own and uri == one.template.replace("{id}", own):
            raw = orjson.dumps(await one.read(exchange)).decode()
            return {"contents": [{"uri": uri, "mimeType": _JSON, "text": raw}]}
    if uri.startswith(_OUTPUTS):
        return await _output(exchange, uri)
    for spec, resource in await _readable(exchange):
        args = _matched(resource, uri)
        if args is not None:
            return await _called(exchange, uri, spec, resource, args)
    raise missing(exchange, uri)


async def check(exchange: Exchange) -> str:
    """A URI that this caller can read."""
    uri = text(exchange.params, "uri")
    if any(uri == one["uri"] for one in await listed(exchange)):
        return uri
    if any(_matched(resource, uri) is not None for _spec, resource in await _readable(exchange)):
        return uri
    raise missing(exchange, uri)


def completed(exchange: Exchange) -> dict[str, Any]:
    """What an argument of a template can be: of our own, the caller's own ids."""
    ref, argument = mapping(exchange.params, "ref"), mapping(exchange.params, "argument")
    given = argument.get("value")
    typed = given if type(given) is str else ""
    values = [
        one.own(exchange)
        for one in OWN
        if ref.get("uri") == one.template and one.own(exchange).startswith(typed)
    ]
    return {"completion": {"values": [one for one in values if one], "hasMore": False}}


def missing(exchange: Exchange, uri: str) -> Fault:
    """Not there, or not for this caller: nobody can tell which."""
    code = INVALID_PARAMS if exchange.peer.is_modern else RESOURCE_NOT_FOUND
    return Fault(code, "There is no such resource; resources/list names them.", {"uri": uri})


async def _readable(exchange: Exchange) -> list[tuple[ToolSpec, Resource]]:
    specs = await exchange.gate.gate.listing(exchange.peer.caller)
    return [(spec, spec.resource) for spec in specs if spec.resource is not None]


def _shown(spec: ToolSpec, resource: Resource) -> dict[str, Any]:
    shown = {"name": spec.name, "title": spec.title, "description": spec.description}
    return shown | ({"mimeType": resource.media_type} if resource.media_type else {})


def _matched(resource: Resource, uri: str) -> dict[str, str] | None:
    if not resource.names:
        return {} if uri == resource.uri else None
    parts = re.split(r"\{[A-Za-z_][A-Za-z0-9_]*\}", resource.uri)
    pattern = "([^/?#]+)".join(re.escape(part) for part in parts)
    found = re.fullmatch(pattern, uri)
    if found is None:
        return None
    values = (unquote(value) for value in found.groups())
    return dict(zip(resource.names, values, strict=True))


async def _called(
    exchange: Exchange, uri: str, spec: ToolSpec, resource: Resource, args: Mapping[str, str]
) -> dict[str, Any]:
    output = await _ran(exchange, spec.name, dict(args))
    if output.error is not None:
        raise Fault(INVALID_PARAMS, output.to_human(), {"uri": uri})
    data: Any = output.data
    if is_content(data):
        held = [block["resource"] for block in data["content"] if block["type"] == "resource"]
        if held:
            return {"contents": held}
    raw = data if type(data) is str else orjson.dumps(data).decode()
    kind = resource.media_type or ("text/plain" if type(data) is str else _JSON)
    return {"contents": [{"uri": uri, "mimeType": kind, "text": raw}]}


async def _ran(exchange: Exchange, tool: str, args: dict[str, Any]) -> Output:
    try:
        return await exchange.gate.call(
            tool, args, caller=exchange.peer.caller, line=ToolLine(exchange, {})
        )
    except CallRefused as error:
        raise refused(error) from None


def refused(error: ToolgateError) -> Fault:
    """A refusal where only a fault can tell it."""
    return Fault(INVALID_PARAMS, error.message, {"code": error.code})


async def _output(exchange: Exchange, uri: str) -> dict[str, Any]:
    reference = uri.removeprefix(_OUTPUTS)
    if not 0 < len(reference) <= _MOST_ID:
        raise missing(exchange, uri)
    parts: list[str] = []
    kind, offset = "text/plain", 0
    while True:
        args = {"reference": reference, "offset": offset, "length": _PIECE}
        output = await _ran(exchange, _READ_OUTPUT, args)
        if output.error is not None:
            raise missing(exchange, uri)
        piece = output.data
        parts.append(piece["text"])
        kind, following = piece["media_type"], piece["next"]
        if piece["size"] > _MOST_OUTPUT:
            raise Fault(
                INVALID_PARAMS,
                f"This output has {piece['size']:,} bytes: read it in pieces with {_READ_OUTPUT}.",
                {"uri": uri},
            )
        if following is None:
            return {"contents": [{"uri": uri, "mimeType": kind, "text": "".join(parts)}]}
        offset = following
