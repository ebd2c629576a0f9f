"""Redis is lost under a whole fleet, and comes back: what goes on, what is refused, what heals."""

import asyncio
from collections import Counter
from functools import partial

import pytest

from tests.fleet.clients import line
from tests.fleet.conftest import NODES, STARTS, Served
from tests.fleet.test_together import agree, called, change, crowd, everywhere, put
from tests.house import until
from tests.limits.house import eventually

pytestmark = [pytest.mark.req("D2", "X10"), STARTS]


async def test_without_redis_each_node_has_its_part_and_side_effects_with_a_limit_stop(
    served: Served,
) -> None:
    for tool in ("look", "mark"):
        put(served, "limits", tenant="umbrella", tool=tool, limit="80/hour")
    served.redis.stop()
    try:
        # A node that has not noticed yet waits for its first answer; none is let through by that.
        assert set(await crowd(served, "mark", 20)) == {"limits_unavailable"}
        found = await crowd(served, "look", 160)
        assert found["success"] == 80, found
        assert found["success"] + found["rate_limited"] == 160
        async with line() as http:
            free = await everywhere(http, served, "mark", "no-limit")
            assert Counter(free) == {"success": NODES}
            # A change counts without a notice too: nobody believes anything but the store.
            await asyncio.to_thread(change, served, 0, allowed=False)
            assert "success" not in await everywhere(http, served, "mark", "revoked")
            await eventually(partial(agree, http, served, is_allowed=False))
            await asyncio.to_thread(change, served, 0, allowed=True)
        told = [node.get("/readyz").body["status"] for node in served.fleet.nodes]
        assert set(told) == {"degraded"}
    finally:
        served.redis.start()
    async with line() as http:

        async def heals(port: int) -> bool:
            return await called(http, port, served.keys.stranger, "mark", "x") == "success"

        for node in served.fleet.nodes:
            await eventually(partial(heals, node.port))
    await until(
        lambda: all(node.get("/readyz").body["status"] == "ready" for node in served.fleet.nodes)
    )
    for tool in ("look", "mark"):
        put(served, "limits", tenant="umbrella", tool=tool, limit=None)
