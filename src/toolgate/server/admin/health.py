"""`/v1/admin/health`: how each part of a running house is, for whoever looks after it."""

from typing import Any

import msgspec

from toolgate import clock
from toolgate.furnishing import programs_among
from toolgate.server.admin.desk import Desk
from toolgate.server.fields import Nothing
from toolgate.server.health import parts_of
from toolgate.spec.tool import BUILT_IN

_MOST_NAMED = 20


async def show_health(desk: Desk, _: Nothing) -> Any:
    """`GET health`: store, sources, engines, tools that cannot run, disk, sandbox, and what time it
    is there.
    """
    snapshot = desk.gate.catalog.current
    own = {
        name: reason
        for name, reason in snapshot.unusable.items()
        if snapshot.specs[name].origin.where != BUILT_IN
    }
    ready = [one for name, one in snapshot.specs.items() if name not in snapshot.unusable]
    programs = [name for name, one in snapshot.specs.items() if one.provider == "shell"]
    return {
        "parts": parts_of(desk.gate),
        "ground": msgspec.to_builtins(await desk.gate.ground()),
        "programs": sorted(programs)[:_MOST_NAMED],
        "builtin_programs": programs_among(ready),
        "now_ns": clock.unix_ns(),
        "tenants": len(desk.gate.tenancy.world.tenants),
        "tools": len(snapshot.specs) - len(snapshot.unusable),
        "unusable": dict(list(own.items())[:_MOST_NAMED]),
        "sources": [msgspec.to_builtins(one) for one in desk.gate.catalog.health()],
        "engines": [msgspec.to_builtins(one) for one in desk.gate.gate.health()],
    }
