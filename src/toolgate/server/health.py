"""How the house is doing, for whoever looks after it: no key is asked for."""

import orjson

from toolgate.runtime import Runtime
from toolgate.server.problems import wire_problem
from toolgate.server.reply import PROBLEM, Reply
from toolgate.telemetry.prometheus import CONTENT_TYPE


async def alive(_gate: Runtime) -> Reply:
    """Alive is alive."""
    return Reply(200, b'{"status":"ok"}')


async def ready(gate: Runtime) -> Reply:
    """Ready means that every source and engine has what it should."""
    sick = [one for one in gate.catalog.health() if not one.ok]
    engines = [one for one in gate.gate.health() if not one.ok]
    # What decides all the same, by the last good policy or without what nodes share, is ready:
    # taking every node out would not help.
    is_ready = all(one.foreign for one in sick) and all(one.serves for one in engines)
    told = {
        "status": "degraded" if sick or engines else "ready",
        "unhealthy_sources": len(sick),
        "unhealthy_engines": [one.engine for one in engines],
    }
    return Reply(200 if is_ready else 503, orjson.dumps(told))


async def metrics(gate: Runtime) -> Reply:
    """The numbers, where they are counted."""
    counted = gate.watch.metrics
    if counted is None:
        return Reply(*wire_problem("not_found"), PROBLEM)
    return Reply(200, await counted(), CONTENT_TYPE)
