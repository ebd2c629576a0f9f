"""Resources of the house itself: who has which tools, calls by their ids, and large outputs."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from toolgate.call import Output
from toolgate.errors import CallNotFound, CallRefused, ToolgateError
from toolgate.server.mcp.answers import CALLS
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.label import UNTRUSTED
from toolgate.server.mcp.line import ToolLine
from toolgate.server.mcp.rpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, Fault
from toolgate.spec.export import export
from toolgate.spec.tool import ToolSpec

JSON = "application/json"
OUTPUTS = "toolgate://outputs/"
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


def uris(exchange: Exchange) -> list[str]:
    """Those of the caller."""
    return [one.template.replace("{id}", one.own(exchange)) for one in OWN if one.own(exchange)]


def listed(exchange: Exchange) -> list[dict[str, Any]]:
    """What can be read as it stands."""
    return [
        {"uri": one.template.replace("{id}", one.own(exchange)), **_shown(one)}
        for one in OWN
        if one.own(exchange)
    ]


def templates(*, runs: bool = True) -> list[dict[str, Any]]:
    """What can be read once its names are filled in. `runs`: whether a tool may run for it."""
    mine = [{"uriTemplate": one.template, **_shown(one)} for one in OWN]
    if not runs:
        return mine
    about = "An output that was too large to be answered at once."
    output = {"uriTemplate": f"{OUTPUTS}{{reference}}", "name": "output", "description": about}
    about = "One of the caller's own calls: how it stands, and its result once it is over."
    call = {"uriTemplate": f"{CALLS}{{call_id}}", "name": "call", "description": about}
    return [*mine, output, call | {"mimeType": JSON}]


async def read(exchange: Exchange, uri: str, *, runs: bool = True) -> dict[str, Any] | None:
    """Its contents; `None` where it is not the house's own. `runs`: as for the templates."""
    for one in OWN:
        own = one.own(exchange)
        if own and uri == one.template.replace("{id}", own):
            raw = orjson.dumps(await one.read(exchange)).decode()
            return {"contents": [{"uri": uri, "mimeType": JSON, "text": raw}]}
    if not runs or not uri.startswith((OUTPUTS, CALLS)):
        return None
    if uri.startswith(CALLS):
        kind, held = JSON, await _call(exchange, uri)
    else:
        kind, held = await output(exchange, uri, uri.removeprefix(OUTPUTS))
    contents = [{"uri": uri, "mimeType": kind, "text": held}]
    # A tool's, whichever: who wrote it is not known any more.
    return {"contents": contents, "_meta": {UNTRUSTED: True}}


async def _call(exchange: Exchange, uri: str) -> str:
    """As `GET /v1/calls/{id}` tells it; one of another looks as if it were not there."""
    caller, call_id = exchange.peer.caller, uri.removeprefix(CALLS)
    if not 0 < len(call_id) <= _MOST_ID:
        raise missing(exchange, uri)
    try:
        found = await exchange.gate.find(caller.tenant, call_id)
    except CallNotFound:
        raise missing(exchange, uri) from None
    if not found.is_of(caller):
        raise missing(exchange, uri)
    return orjson.dumps(found.shown()).decode()


async def output(
    exchange: Exchange, uri: str, reference: str, most: int = _MOST_OUTPUT
) -> tuple[str, str]:
    """What an output is, and the whole of it."""
    if not 0 < len(reference) <= _MOST_ID:
        raise missing(exchange, uri)
    parts: list[str] = []
    offset = 0
    while True:
        args = {"reference": reference, "offset": offset, "length": _PIECE}
        found = await _ran(exchange, _READ_OUTPUT, args)
        if found.error is not None:
            raise missing(exchange, uri)
        piece = found.data
        parts.append(piece["text"])
        if piece["size"] > most:
            raise Fault(
                INVALID_PARAMS,
                f"This output has {piece['size']:,} bytes: read it in pieces with {_READ_OUTPUT}.",
                {"uri": uri},
            )
        if piece["next"] is None:
            return piece["media_type"], "".join(parts)
        offset = piece["next"]


def missing(exchange: Exchange, uri: str, message: str = "") -> Fault:
    """Not there, or not for this caller: nobody can tell which."""
    code = INVALID_PARAMS if exchange.peer.is_modern else RESOURCE_NOT_FOUND
    if message:
        # Words of the server that has it.
        return Fault(code, message, {"uri": uri, UNTRUSTED: True})
    return Fault(code, "There is no such resource; resources/list names them.", {"uri": uri})


def _shown(one: _Own) -> dict[str, Any]:
    return {"name": one.name, "description": one.about, "mimeType": JSON}


async def _ran(exchange: Exchange, tool: str, args: dict[str, Any]) -> Output:
    try:
        return await exchange.gate.call(
            tool, args, caller=exchange.peer.caller, line=ToolLine(exchange, {})
        )
    except CallRefused as error:
        raise _refused(error) from None


def _refused(error: ToolgateError) -> Fault:
    return Fault(INVALID_PARAMS, error.message, {"code": error.code})
