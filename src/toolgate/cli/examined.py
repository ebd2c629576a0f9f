"""A running server, looked at from outside: what it answers, and what it says of its parts."""

from typing import Any

import msgspec

from toolgate import clock
from toolgate.catalog.plugins import SOURCE as PLUGIN
from toolgate.cli import show
from toolgate.cli.around import disk, sandbox, skew
from toolgate.cli.far import Place, Server, reach
from toolgate.cli.finding import (
    Finding,
    of_engine,
    of_listed,
    of_parts,
    of_plugin,
    of_sources,
    of_tools,
)
from toolgate.errors import PermissionDenied, ToolgateError, Unauthenticated
from toolgate.gate.policy import Health
from toolgate.ground import Ground
from toolgate.upstreams.review import SOURCE


async def examined(place: Place) -> list[Finding]:
    """Each part of the server, or the first thing that keeps it from being asked."""
    try:
        return await reach(place, _asked)
    except ToolgateError as error:
        return [Finding("server", False, error.message)]


async def _asked(server: Server) -> list[Finding]:
    await server.look("/healthz")
    found = [Finding("server", True, f"{server.url} answers")]
    before = clock.unix_ns()
    try:
        told: dict[str, Any] = await server.get("health")
    except Unauthenticated as error:
        return [*found, Finding("key", False, error.message)]
    except PermissionDenied:
        says = "opens the server, and is no admin's: its parts are not told to it"
        return [*found, Finding("key", True, says)]
    if "ground" not in told:
        return [*found, Finding("server", False, "is of an older version: upgrade it first")]
    middle = (before + clock.unix_ns()) / 2
    plugins, servers = await server.get("plugins"), await server.get("servers")
    ground = msgspec.convert(told["ground"], Ground)
    programs, builtin = told["programs"], told["builtin_programs"]
    waiting = len(builtin) if ground.refusal else 0
    apart = (SOURCE, PLUGIN)
    sources = [one for one in told["sources"] if not one["source"].startswith(apart)]
    return [
        *found,
        Finding("key", True, "an admin's"),
        skew((told["now_ns"] - middle) / 1e9, "the server"),
        *of_parts(told["parts"], show.count(told["tenants"], "tenant")),
        *of_sources(sources),
        Finding("tools", True, of_tools(told["tools"] - waiting, waiting=waiting)),
        *(Finding("tool", False, f"{name}: {why}") for name, why in told["unusable"].items()),
        *map(of_plugin, plugins["plugins"]),
        *map(of_listed, servers["servers"]),
        *(of_engine(msgspec.convert(one, Health)) for one in told["engines"]),
        disk(ground.free),
        sandbox(ground.sandbox, ground.refusal, programs, builtin, is_named=ground.is_named),
    ]
