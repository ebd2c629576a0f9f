"""How the house is doing, for whoever looks after it: no key is asked for."""

import orjson

from toolgate.runtime import Runtime
from toolgate.server.problems import wire_problem
from toolgate.server.reply import PROBLEM, Reply
from toolgate.telemetry.prometheus import CONTENT_TYPE

_OK, _AWAY, _HELD = "ok", "away", "quarantined"
# The store is asked twice a second; who has not heard from it for so long is cut off.
_STALE_NS = 10_000_000_000


async def alive(_gate: Runtime) -> Reply:
    """Alive is alive."""
    return Reply(200, b'{"status":"ok"}')


async def ready(gate: Runtime) -> Reply:
    """Ready means that every source and engine has what it should."""
    sick = [one for one in gate.catalog.health() if not one.ok]
    engines = [one for one in gate.gate.health() if not one.ok]
    # What decides all the same, by the last good policy or without what nodes share, is ready:
    # taking every node out would not help.
    parts = parts_of(gate)
    is_ready = (
        parts["store"] != _AWAY
        and all(one.foreign for one in sick)
        and all(one.serves for one in engines)
    )
    is_well = not (sick or engines) and set(parts.values()) == {_OK}
    told = {
        "status": "ready" if is_well else "degraded",
        "unhealthy_sources": len(sick),
        "unhealthy_engines": [one.engine for one in engines],
        "parts": parts,
    }
    return Reply(200 if is_ready else 503, orjson.dumps(told))


def parts_of(gate: Runtime) -> dict[str, str]:
    """What this house depends on, and whether it is there. Without a broker queued calls wait, and
    a node is ready all the same.
    """
    store = _HELD if gate.held() else _OK
    parts = {"store": store if gate.tenancy.age_ns < _STALE_NS else _AWAY}
    parts |= {one.engine: _OK if one.ok else _AWAY for one in gate.gate.health()}
    broker = gate.queue.broker
    if broker is not None:
        parts["broker"] = _AWAY if broker() else _OK
    return parts


async def metrics(gate: Runtime) -> Reply:
    """The numbers, where they are counted."""
    counted = gate.watch.metrics
    if counted is None:
        return Reply(*wire_problem("not_found"), PROBLEM)
    return Reply(200, await counted(), CONTENT_TYPE)
