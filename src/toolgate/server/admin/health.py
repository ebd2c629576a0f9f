"""`/v1/admin/health`: how each part of a running house is, for whoever looks after it."""

from typing import Any

import msgspec

from toolgate import clock
from toolgate.server.admin.desk import Desk
from toolgate.server.fields import Nothing
from toolgate.spec.tool import BUILT_IN

_MOST_NAMED = 20


async def show_health(desk: Desk, _: Nothing) -> Any:
    """`GET health`: sources, engines, tools that cannot run, and what time it is there."""
    snapshot = desk.gate.catalog.current
    own = {
        name: reason
        for name, reason in snapshot.unusable.items()
        if snapshot.specs[name].origin.where != BUILT_IN
    }
    return {
        "now_ns": clock.unix_ns(),
        "tenants": len(desk.gate.tenancy.world.tenants),
        "tools": len(snapshot.specs) - len(snapshot.unusable),
        "unusable": dict(list(own.items())[:_MOST_NAMED]),
        "sources": [msgspec.to_builtins(one) for one in desk.gate.catalog.health()],
        "engines": [msgspec.to_builtins(one) for one in desk.gate.gate.health()],
    }
